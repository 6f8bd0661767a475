"""Actuator network: a neural network, trained on a real motor, that predicts joint torques.

The robot file defines all other actuators, and the engine simulates them: servos (`position` with
`forcerange`), PD-controlled motors with a torque that falls with speed (`dcmotor` with `nominal` and
`controller`), and `delay`.
"""

import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import torch
from torch import Tensor


class Network:
  """Network in a TorchScript file that predicts joint torques from recent position errors and speeds.

  It maps [rows, 2 * samples] to torques [rows, 1] [N m], with one row per joint and environment. The inputs
  are the position errors, target - angle [rad], the latest first, then the joint speeds [rad/s] in the same
  order (Hwangbo et al. 2019, arXiv 1901.08652). The task keeps the history in a buffer that is zero at the
  start of an episode.
  """

  def __init__(self, path: str | Path, samples: int, interval: int, device: torch.device | str) -> None:
    """Load a network; its input is `samples` joint states, `interval` physics steps apart.

    Raises ValueError if the file is missing, is no TorchScript file, or has other input or output shapes.
    """
    self._network = _load(Path(path), device)
    self._interval, self.memory = interval, interval * (samples - 1) + 1  # length of the history
    numbers = torch.zeros(2, 2 * samples, device=device)
    try:
      shape = tuple(self._network(numbers).shape)
    except RuntimeError as error:
      raise ValueError(f"actuator network '{path}': it takes no rows of {2 * samples} numbers") from error
    if shape != (2, 1):
      raise ValueError(f"actuator network '{path}': it gives {list(shape)} for two rows, not [2, 1]")

  def remember(self, past: Tensor, errors: Tensor, speeds: Tensor) -> None:
    """Insert errors and speeds [num_envs, joints] at the front of `past` [num_envs, 2, memory, joints]."""
    past.copy_(torch.cat([torch.stack([errors, speeds], 1).unsqueeze(2), past[:, :, :-1]], 2))

  @torch.no_grad()
  def torques(self, past: Tensor) -> Tensor:
    """Return joint torques [num_envs, joints] [N m] from `past` [num_envs, 2, memory, joints]."""
    seen = past[:, :, :: self._interval].movedim(3, 1)  # [num_envs, joints, 2, samples]
    return self._network(seen.flatten(2).flatten(0, 1)).view(seen.shape[:2])


def without_servos(robot: Path | str) -> str:
  """Return the MJCF text of a robot file with motors in place of its servos, with the same limits."""
  tree = ET.parse(robot)
  for servo in tree.iter("position"):
    servo.tag = "motor"
    for name in ("kp", "kv", "inheritrange"):
      servo.attrib.pop(name, None)
  return ET.tostring(tree.getroot(), encoding="unicode")


def _load(path: Path, device: torch.device | str) -> torch.jit.ScriptModule:
  """Return the frozen module of a TorchScript file, in evaluation mode."""
  if not path.is_file():
    raise ValueError(f"actuator network '{path}': there is no such file")
  with warnings.catch_warnings():
    # torch recommends exported programs, but published actuator networks are TorchScript files.
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
      return torch.jit.freeze(torch.jit.load(path, device).eval())
    except RuntimeError as error:
      raise ValueError(f"actuator network '{path}': it is no TorchScript file") from error
