"""Shared parts of Gymnasium's tasks: the installed package's robot files, noisy starts, running along x.

Observations, rewards, terminations, starts and time limits of this folder are the defaults of Gymnasium's v5
environments (https://gymnasium.farama.org/environments/mujoco), also where they read a derived quantity: as
in MuJoCo, it belongs to the last evaluation of a step. An action in [-1, 1] is mapped onto the control range;
Gymnasium's action is the control itself.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tasks import base
from tasks.base import option


def _assets() -> Path:
  """Return the folder of Gymnasium's robots, without an import of its environments."""
  package = importlib.util.find_spec("gymnasium")
  if package is None or package.origin is None:
    raise ImportError("the tasks gym/* use the robots of the package gymnasium, which is not installed")
  return Path(package.origin).parent / "envs" / "mujoco" / "assets"


ASSETS = _assets()
# For a few cores: physics this light leaves the time to the network, which needs many updates on few samples.
TRAIN: dict[str, object] = {"num_envs": 512}
PPO: dict[str, object] = {
  "horizon": 64,
  "epochs": 5,
  "minibatches": 8,
  "reference_minibatch": 4096,
  "hidden": [128, 128],
  "reward_scale": 0.1,  # rewards reach 10: scaled, symlog is nearly linear
}


@dataclass
class Config(base.Config):
  """Settings that most of them have."""

  start_noise: float = option(
    0.1, "largest offset of positions, and size of velocities, at the start of an episode", low=0
  )


class Task(base.Task):
  """Starts near the file's pose."""

  config: Config
  normal_velocity = False  # velocities start normally distributed, of that standard deviation; else uniform

  def setup(self) -> None:
    """Keep the file's pose."""
    self.home = self.constant(self.model.qpos0)  # [nq]

  def initial_state(self) -> dict[str, Tensor]:
    """Offset every number of the pose, a quaternion's too, and of the velocity."""
    noise, shape = self.config.start_noise, (self.model.nv,)
    if self.normal_velocity:
      qvel = noise * self.random.normal("start velocity", shape)
    else:
      qvel = self.random.uniform("start velocity", shape, -noise, noise)
    offset = self.random.uniform("start position", (self.model.nq,), -noise, noise)
    return {"qpos": self.home + offset, "qvel": qvel}


class Runner(Task):
  """Pays for the speed along x and charges for the controls; shows positions, but not where along x."""

  unseen = 1  # numbers at the start of qpos that are not observed

  def setup(self) -> None:
    """Make room for the place before the action, and the speed."""
    super().setup()
    self.before = self.buffer()  # x before the action [num_envs] [m]
    self.speed = self.buffer()  # along x over the control step [num_envs] [m/s]

  def place(self) -> Tensor:
    """Return x as the reward measures it [num_envs] [m]."""
    return self.sim.qpos[:, 0]

  def control(self) -> None:
    """Note where the robot is, then drive the motors."""
    self.before.copy_(self.place())
    super().control()

  def update(self) -> None:
    """Measure the speed."""
    self.speed.copy_((self.place() - self.before) / self.dt)

  def reward(self) -> dict[str, Tensor]:
    """Pay for speed, charge for squared controls."""
    return {"forward": self.speed, "control": self.sim.ctrl.square().sum(1)}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show positions and velocities."""
    return {"policy": {"position": self.sim.qpos[:, self.unseen :], "velocity": self.sim.qvel}}

  def metrics(self) -> dict[str, Tensor]:
    """Log the speed under Gymnasium's name."""
    return {"x_velocity": self.speed}
