"""Ant: a four-legged robot with eight motors walks forwards, with penalties on effort and contact."""

from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 30_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0}  # early in training, large actions cost more than they earn


@dataclass
class Config(gym_v5.Config):
  """Settings of Ant."""

  substeps: int = option(5, "number of physics steps per control step", low=1)
  height_low: float = option(0.2, "torso height below which the episode ends", "m")
  height_high: float = option(1.0, "torso height above which the episode ends", "m")
  contact_limit: float = option(
    1.0, "magnitude at which contact forces and torques are clipped", "N, N m", low=0
  )
  reward_forward: float = option(1.0, "weight of the torso velocity along x", "s/m")
  reward_healthy: float = option(1.0, "weight of the constant reward of a step that does not end the episode")
  reward_control: float = option(-0.5, "weight of the penalty on the sum of squared controls")
  reward_contact: float = option(
    -5e-4, "weight of the penalty on the sum of squared contact forces and torques, after clipping"
  )


class Task(gym_v5.Runner):
  """Ant task of Gymnasium with 8 actions, motor torques, and 105 observations."""

  robot = gym_v5.ASSETS / "ant.xml"
  outputs = ("cfrc_ext", "xpos")
  normal_velocity = True
  unseen = 2
  config: Config

  def setup(self) -> None:
    """Look up the torso; create a buffer for contact forces, zero before the first step as in Gymnasium."""
    super().setup()
    self.torso = self.body_of("torso")
    self.contact = self.buffer(self.model.nbody - 1, 6)  # clipped torques, forces [num_envs, bodies, 6]

  def x_position(self) -> Tensor:
    """Return x of the torso in the last evaluation [num_envs] [m]."""
    return self.sim.xpos[:, self.torso, 0].squeeze(1)

  def update(self) -> None:
    """Compute the speed; clip the contact forces."""
    super().update()
    limit = self.config.contact_limit
    self.contact.copy_(self.sim.cfrc_ext[:, 1:].clamp(-limit, limit))

  def reward(self) -> dict[str, Tensor]:
    """Add a reward for being healthy and a penalty on contact."""
    contact = self.contact.square().sum((1, 2))
    return super().reward() | {"healthy": ~self.terminated(), "contact": contact}

  def terminated(self) -> Tensor:
    """Fail if the torso is too low or too high."""
    height = self.sim.qpos[:, 2]
    return (height < self.config.height_low) | (height > self.config.height_high)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return positions, velocities and contact forces."""
    return {"policy": super().observe()["policy"] | {"contact": self.contact}}
