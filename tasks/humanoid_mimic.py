"""Humanoid mimic: the humanoid tracks a steady walk, as an instance of `motion_track` with one clip.

The walk of `tasks/motion/walk.py` is in closed form.
"""

from dataclasses import dataclass

from tasks import motion_track
from tasks.base import option
from tasks.motion import settings
from tasks.motion_track import PPO, TRAIN, Task

__all__ = ["PPO", "TRAIN", "Config", "Task"]


@dataclass
class Config(motion_track.Config):
  """Settings of humanoid mimic."""

  episode_steps: int = option(600, "maximum number of control steps per episode", low=1)
  motion: str = option(settings.STEADY_WALK, f"clips, with commas between: {settings.CLIPS}")
