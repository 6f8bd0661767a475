"""Ant: a torso on four legs of two motors each walks forwards, charged for effort and contact."""

from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 30_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0}  # large actions cost more than a beginner earns


@dataclass
class Config(gym_v5.Config):
  """Settings of Ant."""

  substeps: int = option(5, "physics steps in a control step", low=1)
  height_low: float = option(0.2, "height of the torso below which an episode ends", "m")
  height_high: float = option(1.0, "height of the torso above which an episode ends", "m")
  contact_limit: float = option(1.0, "size at which contact forces and torques are cut", "N, N m", low=0)
  reward_forward: float = option(1.0, "weight of the torso's speed along x", "s/m")
  reward_healthy: float = option(1.0, "weight of one per step that does not end the episode early")
  reward_control: float = option(-0.5, "weight of the summed squared controls")
  reward_contact: float = option(-5e-4, "weight of the summed squared contact forces and torques, cut")


class Task(gym_v5.Runner):
  """Eight motors are the action; the observation has 105 numbers."""

  robot = gym_v5.ASSETS / "ant.xml"
  outputs = ("cfrc_ext", "xpos")
  normal_velocity = True
  unseen = 2
  config: Config

  def setup(self) -> None:
    """Find the torso; make room for contact forces: zero before the first step, as Gymnasium has them."""
    super().setup()
    self.torso = self.body_of("torso")
    self.contact = self.buffer(self.model.nbody - 1, 6)  # torques and forces, cut [num_envs, bodies, 6]

  def place(self) -> Tensor:
    """Return x of the torso in the last evaluation [num_envs] [m]."""
    return self.sim.xpos[:, self.torso, 0].squeeze(1)

  def update(self) -> None:
    """Measure the speed, cut the contact forces."""
    super().update()
    limit = self.config.contact_limit
    self.contact.copy_(self.sim.cfrc_ext[:, 1:].clamp(-limit, limit))

  def reward(self) -> dict[str, Tensor]:
    """Pay for being healthy and charge for contact besides."""
    contact = self.contact.square().sum((1, 2))
    return super().reward() | {"healthy": ~self.terminated(), "contact": contact}

  def terminated(self) -> Tensor:
    """Fail when the torso is low or high."""
    height = self.sim.qpos[:, 2]
    return (height < self.config.height_low) | (height > self.config.height_high)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show positions, velocities and contact forces."""
    return {"policy": super().observe()["policy"] | {"contact": self.contact}}
