"""Cartpole with a pole of unknown mass, kicks against the cart, noise in its sensors, and levels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import cartpole
from tasks.base import option

TRAIN, PPO = cartpole.TRAIN, cartpole.PPO


@dataclass
class Config(cartpole.Config):
  """Settings of the shaken cartpole."""

  noise_position: float = option(0.01, "largest error of the positions that the policy sees", "m, rad", low=0)
  delay_policy: int = option(2, "control steps by which what the policy sees is late, at most", low=0)
  history_policy: int = option(3, "observations that the policy sees side by side", low=1)
  pole_mass: float = option(0.3, "largest deviation of the pole's mass, as a fraction of it", low=0, high=1)
  kick_seconds_min: float = option(0.5, "shortest time between kicks", "s", low=0)
  kick_seconds_max: float = option(2.0, "longest time between kicks", "s", low=0)
  kick_speed: float = option(
    1.0, "largest change of the cart's speed by a kick at the full level", "m/s", low=0
  )
  level_step: float = option(0.1, "change of the level with each episode, up to 1 by survival", low=0, high=1)


class Task(cartpole.Task):
  """The critic sees the true state and the level; an episode succeeds that reaches the time limit."""

  vary = ("body_mass", "body_inertia")
  config: Config

  def setup(self) -> None:
    """Keep what the draws start from, and let kicks happen."""
    self.pole = self.body_of("pole")
    self.mass = self.constant(self.model.body_mass)  # [nbody] [kg]
    self.inertia = self.constant(self.model.body_inertia)  # [nbody, 3] [kg m^2]
    self.heavier = self.buffer()  # deviation of the pole's mass, as a fraction of it [num_envs]
    self.level = self.buffer(lasting=True)  # of difficulty, 0 ... 1 [num_envs]
    self.every(self.config.kick_seconds_min, self.config.kick_seconds_max, self.kick)

  def initial_state(self) -> dict[str, Tensor]:
    """Move the level by how the episode went; in training, draw a new pole."""
    change = torch.where(self.success(), self.config.level_step, -self.config.level_step)
    start = super().initial_state() | {"level": (self.level + change).clamp(0.0, 1.0)}
    return start | self.draw_pole() if self.training else start

  def draw_pole(self) -> dict[str, Tensor]:
    """Return poles lighter and heavier than the robot file's, but of its shape."""
    heavier = self.random.uniform("pole mass", (), -self.config.pole_mass, self.config.pole_mass)
    factor = torch.ones(self.num_envs, self.model.nbody, device=self.device)
    factor[:, self.pole] += heavier.unsqueeze(1)
    return {
      "heavier": heavier,
      "body_mass": self.mass * factor,
      "body_inertia": self.inertia * factor.unsqueeze(2),
    }

  def kick(self) -> dict[str, Tensor]:
    """Change the cart's speed at once."""
    qvel = self.sim.qvel.clone()
    speed = self.config.kick_speed
    qvel[:, 0] += self.level * self.random.uniform("kick", (), -speed, speed)
    return {"qvel": qvel}

  def success(self) -> Tensor:
    """Succeed at the time limit."""
    return ~self.terminated() & (self.episode_steps >= self.max_episode_steps)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the critic all there is."""
    seen = super().observe()["policy"]
    return {"policy": seen, "critic": {**seen, "level": self.level, "heavier": self.heavier}}

  def metrics(self) -> dict[str, Tensor]:
    """Log the level."""
    return {"level": self.level}
