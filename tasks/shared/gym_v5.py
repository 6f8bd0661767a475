"""Shared parts of the Gymnasium tasks: robot files of the installed package, noisy starts, running along x.

Observations, rewards, terminations, starts and time limits of `tasks/gym/` are the defaults of Gymnasium's v5
environments (https://gymnasium.farama.org/environments/mujoco). This includes derived quantities: as in
MuJoCo, they are those of the last evaluation of a step. An action in [-1, 1] is mapped onto the control
range; in Gymnasium, the action is the control itself.
"""

from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import packaged

ASSETS = packaged.folder("gymnasium", "gym/*", "gymnasium") / "envs" / "mujoco" / "assets"
TRAIN = packaged.TRAIN
PPO = packaged.PPO | {"reward_scale": 0.1}  # rewards reach 10: scaled, symlog is nearly linear


@dataclass
class Config(base.Config):
  """Settings of most Gymnasium tasks."""

  start_noise: float = option(
    0.1, "largest position offset, and scale of velocities, at the start of an episode", low=0
  )


class Task(base.Task):
  """Task that starts near the pose of the robot file."""

  config: Config
  normal_velocity = False  # start velocities are normal with standard deviation start_noise; else uniform

  def setup(self) -> None:
    """Store the pose of the robot file."""
    self.home = self.constant(self.model.qpos0)  # [nq]

  def initial_state(self) -> dict[str, Tensor]:
    """Add noise to all numbers of the pose, quaternions included, and to the velocity."""
    noise, shape = self.config.start_noise, (self.model.nv,)
    if self.normal_velocity:
      qvel = noise * self.random.normal("start velocity", shape)
    else:
      qvel = self.random.uniform("start velocity", shape, -noise, noise)
    offset = self.random.uniform("start position", (self.model.nq,), -noise, noise)
    return {"qpos": self.home + offset, "qvel": qvel}


class Runner(Task):
  """Task that rewards speed along x, penalises controls, and hides the position along x."""

  unseen = 1  # numbers at the start of qpos that are not observed

  def setup(self) -> None:
    """Create buffers for the position before the action and for the speed."""
    super().setup()
    self.before = self.buffer()  # x before the action [num_envs] [m]
    self.speed = self.buffer()  # along x over the control step [num_envs] [m/s]

  def x_position(self) -> Tensor:
    """Return the x coordinate that the reward measures [num_envs] [m]."""
    return self.sim.qpos[:, 0]

  def control(self) -> None:
    """Store the position, then set the controls."""
    self.before.copy_(self.x_position())
    super().control()

  def update(self) -> None:
    """Compute the speed along x."""
    self.speed.copy_((self.x_position() - self.before) / self.dt)

  def reward(self) -> dict[str, Tensor]:
    """Reward speed, penalise squared controls."""
    return {"forward": self.speed, "control": self.sim.ctrl.square().sum(1)}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return positions and velocities."""
    return {"policy": {"position": self.sim.qpos[:, self.unseen :], "velocity": self.sim.qvel}}

  def metrics(self) -> dict[str, Tensor]:
    """Return the speed under Gymnasium's name [m/s]."""
    return {"x_velocity": self.speed}
