"""Cartpole with a pole of unknown mass, kicks against the cart, noise in its sensors, and levels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import cartpole
from tasks.base import option
from tasks.shared import randomize

TRAIN, PPO = cartpole.TRAIN, cartpole.PPO


@dataclass
class Config(cartpole.Config):
  """Settings of the shaken cartpole."""

  noise_position: float = option(0.01, "largest error of the positions that the policy sees", "m, rad", low=0)
  delay_policy: int = option(2, "control steps by which what the policy sees is late, at most", low=0)
  history_policy: int = option(3, "number of consecutive observations in the policy input", low=1)
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
    """Let poles differ and kicks happen."""
    self.pole = self.body_of("pole")
    self.mass = self.constant(self.model.body_mass)  # [nbody] [kg]
    lightest, heaviest = 1 - self.config.pole_mass, 1 + self.config.pole_mass
    self.poles = randomize.Randomization(self, {"pole": randomize.mass(lightest, heaviest, self.pole)})
    self.level = self.buffer(lasting=True)  # of difficulty, 0 ... 1 [num_envs]
    self.every(self.config.kick_seconds_min, self.config.kick_seconds_max, self.kick)

  def initial_state(self) -> dict[str, Tensor]:
    """Move the level by how the episode went, and draw a new pole."""
    change = torch.where(self.success(), self.config.level_step, -self.config.level_step)
    level = (self.level + change).clamp(0.0, 1.0)
    return super().initial_state() | {"level": level} | self.poles.draw()

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
    heavier = self.sim.body_mass[:, self.pole] / self.mass[self.pole] - 1
    return {"policy": seen, "critic": {**seen, "level": self.level, "heavier": heavier}}

  def metrics(self) -> dict[str, Tensor]:
    """Log the level."""
    return {"level": self.level}
