"""Humanoid: a robot of human shape with seventeen motors walks forwards."""

from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 30_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0}
# An optimist falls: it has a return of 1,888 after 0.36 million steps, and careful critics have 4,937.
SAC: dict[str, object] = {"critic": "twohot", "clipped_double_q": True}
TD3 = SAC


@dataclass
class Config(gym_v5.Config):
  """Settings of Humanoid."""

  substeps: int = option(5, "number of physics steps per control step", low=1)
  start_noise: float = option(
    0.01, "largest offset of positions and velocities at the start of an episode", low=0
  )
  height_low: float = option(1.0, "torso height below which the episode ends", "m")
  height_high: float = option(2.0, "torso height above which the episode ends", "m")
  contact_limit: float = option(
    2e7, "largest sum of squared contact forces and torques in the penalty", "N^2, N^2 m^2", low=0
  )
  reward_forward: float = option(1.25, "weight of the velocity of the centre of mass along x", "s/m")
  reward_healthy: float = option(5.0, "weight of the constant reward of a step that does not end the episode")
  reward_control: float = option(-0.1, "weight of the penalty on the sum of squared controls")
  reward_contact: float = option(
    -5e-7, "weight of the penalty on the sum of squared contact forces and torques"
  )


class Body(gym_v5.Task):
  """Base of both humanoid tasks of Gymnasium, with 17 actions, motor torques, and 348 observations."""

  outputs: tuple[str, ...] = ("cfrc_ext", "cinert", "cvel", "qfrc_actuator")

  def setup(self) -> None:
    """Create a buffer for contact forces, zero before the first step as in Gymnasium."""
    super().setup()
    self.contact = self.buffer(self.model.nbody - 1, 6)  # torques and forces [num_envs, bodies, 6]

  def update(self) -> None:
    """Store the contact forces."""
    super().update()
    self.contact.copy_(self.sim.cfrc_ext[:, 1:])

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return positions, velocities, inertias, joint torques and contact forces."""
    blocks = {
      "position": self.sim.qpos[:, 2:],
      "velocity": self.sim.qvel,
      "inertia": self.sim.cinert[:, 1:],  # about the centre of mass
      "body_velocity": self.sim.cvel[:, 1:],  # about the centre of mass
      "torque": self.sim.qfrc_actuator[:, 6:],
      "contact": self.contact,
    }
    return {"policy": blocks}

  def squared_contact(self, limit: float) -> Tensor:
    """Return the sum of squared contact forces and torques, at most `limit` [num_envs] [N^2, N^2 m^2]."""
    return self.contact.square().sum((1, 2)).clamp(max=limit)


class Task(Body, gym_v5.Runner):
  """Humanoid task of Gymnasium: walking forwards."""

  robot = gym_v5.ASSETS / "humanoid.xml"
  outputs = (*Body.outputs, "xipos")
  config: Config

  def setup(self) -> None:
    """Compute the mass fraction of each body."""
    super().setup()
    mass = self.constant(self.model.body_mass)
    self.share = mass / mass.sum()  # mass fractions [nbody]

  def x_position(self) -> Tensor:
    """Return x of the centre of mass in the last evaluation [num_envs] [m]."""
    return (self.sim.xipos[:, :, 0] * self.share).sum(1)

  def reward(self) -> dict[str, Tensor]:
    """Add a reward for being healthy and a penalty on contact."""
    contact = self.squared_contact(self.config.contact_limit)
    return super().reward() | {"healthy": ~self.terminated(), "contact": contact}

  def terminated(self) -> Tensor:
    """Fail if the torso is too low or too high."""
    height = self.sim.qpos[:, 2]
    return (height <= self.config.height_low) | (height >= self.config.height_high)
