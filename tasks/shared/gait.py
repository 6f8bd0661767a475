"""Gait clock of a walking robot: it says when each foot stands and when it swings.

The rewards follow Unitree's `unitree_rl_gym` (`legged_gym/envs/g1`, BSD-3-Clause), but for the load that
swinging feet carry. The load shows a standing robot how to begin a step: by shifting its weight. Whether a
foot touches the ground does not (Siekmann et al. 2021, arXiv 2011.01387).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import locomotion

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 50_000_000}
PPO: dict[str, object] = {**locomotion.PPO, "entropy_coef": 0.02, "entropy_steps": 2_000_000}


@dataclass
class Config(locomotion.Config):
  """Settings of a robot that walks by a clock."""

  step_seconds: float = option(
    0.5, "duration of a gait cycle; the longer, the more two legs sway", "s", low=0.1
  )
  stance: float = option(0.55, "fraction of the gait cycle in which a foot stands", low=0, high=1)
  swing_height: float = option(0.08, "target height of a swinging foot above its height at home", "m", low=0)
  reward_alive: float = option(0.0, "weight of the constant reward per step")
  reward_gait: float = option(0.5, "weight of the share of feet that agree with the gait clock")
  reward_load: float = option(
    0.0, "weight of the penalty on the share of the weight that feet carry which should swing"
  )
  reward_swing: float = option(
    -20.0, "weight of the penalty on the squared height error of swinging feet", "1/m^2"
  )


class Task(locomotion.Task):
  """Task of a robot with sites on its feet, which observes a clock."""

  phases: Sequence[float] = (0.0, 0.5)  # of each foot in the gait cycle
  config: Config

  def setup(self) -> None:
    """Look up the feet and weigh the robot."""
    self.weight = float(-self.model.gravity[2] * self.model.body_mass.sum())  # [N]
    self.offsets = self.constant(self.phases)
    super().setup()
    cycle = f"of 2 pi t / {self.config.step_seconds:g} s, with the time t since the start"
    self.sensors = {**self.sensors, "clock": base.Sensor(("sin", "cos"), "", cycle)}

  def clock(self) -> Tensor:
    """Return the time since the start of the episode in gait cycles [num_envs, 1]."""
    return (self.episode_steps * (self.dt / self.config.step_seconds)).unsqueeze(1)

  def swings(self) -> Tensor:
    """Return which feet should swing [num_envs, feet] bool."""
    return ((self.clock() + self.offsets).frac() >= self.config.stance) & self.moves().unsqueeze(1)

  def rise(self) -> Tensor:
    """Return the target heights of swinging feet [num_envs, feet] [m], up and down without a jolt."""
    swung = ((self.clock() + self.offsets).frac() - self.config.stance) / (1 - self.config.stance)
    return self.config.swing_height * (math.pi * swung).sin().square()

  def lifted(self) -> Tensor:
    """Return the heights of the feet above those at home [num_envs, feet] [m]."""
    return self.sim.site_xpos[:, self.soles, 2] - self.radius

  def reward(self) -> dict[str, Tensor]:
    """Add rewards for feet that follow the clock; those that swing should carry no load, and lift off."""
    terms, swings = super().reward(), self.swings()
    load = (self.sim.sensordata[:, self.touch] * swings).sum(1) / self.weight
    return terms | {
      "alive": torch.ones_like(terms["tilt"]),
      "gait": (self.contacts() != swings).sum(1) / len(self.feet),
      "load": load.clamp(max=1.0),
      "swing": ((self.lifted() - self.rise()).square() * swings).sum(1),
    }

  def measure(self) -> dict[str, Tensor]:
    """Add the gait clock."""
    angle = 2 * math.pi * self.clock()
    return super().measure() | {"clock": torch.cat([angle.sin(), angle.cos()], 1)}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the groups, the critic's with the gait clock at the end."""
    groups = super().observe()
    groups["critic"]["clock"] = groups["critic"].pop("clock")
    return groups

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange the left and right limbs, with the gait clock shifted by half a cycle."""
    return {**super().symmetry(), "clock": [-1, -1]}
