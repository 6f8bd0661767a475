"""Settings: dataclasses whose fields say what they mean. The trainer declares its own with `option` too."""

import dataclasses
import math
from typing import Any


def option(default: Any, meaning: str, unit: str = "", low: float = -math.inf, high: float = math.inf) -> Any:
  """Return a field: its default (a list is copied for each instance), meaning, unit, inclusive range."""
  metadata = {"help": meaning, "unit": unit, "low": low, "high": high}
  if isinstance(default, list):
    return dataclasses.field(default_factory=default.copy, metadata=metadata)
  return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass
class Config:
  """Settings of a task. What a field is for may follow from its name.

  `reward_x` is the weight of the reward term `x`; `noise_x` the largest error of the block `x` that the
  policy observes, and `delay_x` how many steps old an observation of the group `x` may be, in training alone;
  `history_x` how many observations of the group `x` lie side by side.
  """

  episode_steps: int = option(1000, "control steps until the time limit", low=1)
  substeps: int = option(4, "physics steps in a control step", low=1)
  keep_states: int = option(
    100, "last states of each environment kept in training, for a file where one diverges; 0: none", low=0
  )
