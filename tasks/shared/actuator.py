"""Actuators that the engine lacks: a network, learned from a real motor, gives each joint's torque.

All else is the robot file's business and runs within the physics: servos (`position`, with `forcerange`), PD
control of a motor whose torque falls with its speed (`dcmotor` with `nominal` and `controller`), and `delay`.
"""

import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import torch
from torch import Tensor


class Network:
  """Torques from the last errors and speeds of joints, by one network for all joints, saved as TorchScript.

  It maps [rows, 2 * samples] to [rows, 1], a row for each joint of each environment: the errors of its angle,
  target - angle [rad], the latest first, then its speeds [rad/s] likewise, to a torque [N m] (Hwangbo et al.
  2019, arXiv 1901.08652). A task keeps the past in a buffer, which an episode starts with zeros.
  """

  def __init__(self, path: str | Path, samples: int, interval: int, device: torch.device | str) -> None:
    """Load the network of `samples` states that lie `interval` physics steps apart.

    Raises ValueError where the file is missing, no TorchScript, or of other shapes.
    """
    self._network = _load(Path(path), device)
    self._interval, self.memory = interval, interval * (samples - 1) + 1  # physics steps to remember
    numbers = torch.zeros(2, 2 * samples, device=device)
    try:
      shape = tuple(self._network(numbers).shape)
    except RuntimeError as error:
      raise ValueError(f"actuator network '{path}': it takes no rows of {2 * samples} numbers") from error
    if shape != (2, 1):
      raise ValueError(f"actuator network '{path}': it gives {list(shape)} for two rows, not [2, 1]")

  def remember(self, past: Tensor, errors: Tensor, speeds: Tensor) -> None:
    """Put errors [rad] and speeds [rad/s] [num_envs, joints] first in past [num_envs, 2, memory, joints]."""
    past.copy_(torch.cat([torch.stack([errors, speeds], 1).unsqueeze(2), past[:, :, :-1]], 2))

  @torch.no_grad()
  def torques(self, past: Tensor) -> Tensor:
    """Return the joints' torques [num_envs, joints] [N m]."""
    seen = past[:, :, :: self._interval].movedim(3, 1)  # [num_envs, joints, 2, samples]
    return self._network(seen.flatten(2).flatten(0, 1)).view(seen.shape[:2])


def without_servos(robot: Path | str) -> str:
  """Return the text of a robot file with motors of the same limits in the place of its servos."""
  tree = ET.parse(robot)
  for servo in tree.iter("position"):
    servo.tag = "motor"
    for name in ("kp", "kv", "inheritrange"):
      servo.attrib.pop(name, None)
  return ET.tostring(tree.getroot(), encoding="unicode")


def _load(path: Path, device: torch.device | str) -> torch.jit.ScriptModule:
  """Return the module in a TorchScript file, its weights constants of the program."""
  if not path.is_file():
    raise ValueError(f"actuator network '{path}': there is no such file")
  with warnings.catch_warnings():
    # torch would rather have programs exported; networks of motors are published as TorchScript.
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
      return torch.jit.freeze(torch.jit.load(path, device).eval())
    except RuntimeError as error:
      raise ValueError(f"actuator network '{path}': it is no TorchScript file") from error
