"""Base class of the settings of a task, and `option`, which declares one setting.

The trainer declares its own settings with `option` too.
"""

import dataclasses
import math
from typing import Any


def option(
  default: Any,
  meaning: str,
  unit: str = "",
  low: float = -math.inf,
  high: float = math.inf,
  *,
  code: bool = False,
) -> Any:
  """Return a dataclass field with a default, a help text, a unit and an inclusive range.

  A default that is a list is copied for each instance. `code`: the value names a file that can run code, such
  as TorchScript; a checkpoint that has such a setting is not enough to load the file.
  """
  metadata = {"help": meaning, "unit": unit, "low": low, "high": high, "code": code}
  if isinstance(default, list):
    return dataclasses.field(default_factory=default.copy, metadata=metadata)
  return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass
class Config:
  """Settings of a task. The prefix of a field's name can give it a meaning.

  `reward_x` is the weight of the reward term `x`. `noise_x` is the largest error of the observation block `x`
  of the policy. `delay_x` is the largest delay of the observation group `x` in control steps. Noise and
  delays apply in training only. `history_x` is the number of consecutive observations in the group `x`.
  """

  episode_steps: int = option(1000, "maximum number of control steps per episode", low=1)
  substeps: int = option(4, "number of physics steps per control step", low=1)
  keep_states: int = option(
    100, "recent states kept per environment in training, to save if it diverges; 0: none", low=0, high=10_000
  )
