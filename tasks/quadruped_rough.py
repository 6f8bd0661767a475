"""Quadruped rough: a robot dog with a height scan walks over slopes, stairs, stones and rubble.

Terrain, curriculum and height scan are in `tasks/shared/rough.py`.
"""

from dataclasses import dataclass
from typing import Any

from tasks import quadruped
from tasks.shared import rough

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 100_000_000}
PPO: dict[str, object] = {
  **quadruped.PPO,
  # A little of the bonus stays. Without it the robot learns to stand still, as noise costs more there than
  # walking earns at first, and the noise vanishes: level 0.02 after 3 million steps. With 0.01, as legged_gym
  # has it, noise grows from 20 million steps on.
  "entropy_coef_final": 0.003,
}


@dataclass
class Config(rough.RoughConfig, quadruped.Config):
  """Settings of quadruped rough."""


class Task(rough.Task, quadruped.Task):
  """Quadruped rough task with 12 actions; 124 observations of the policy, 138 of the critic."""

  config: Config

  @classmethod
  def scene(cls, config: Any) -> Any:
    """Return the robot on the terrain, an MjSpec."""
    return rough.tiles(config, config.terrain_kinds).scene(super().scene(config))
