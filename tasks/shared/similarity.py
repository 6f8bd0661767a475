"""Settings of a robot like another one of different size and weight.

Two robots of the same shape move alike if lengths are in proportion to their legs or arms, times to the root
of these (Froude's similarity, Alexander and Jayes 1983), and torques to weight times this length. So do the
rewards that they get, if each weight is scaled by the inverse of its term.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import TypeVar

from tasks.base import Config
from tasks.core.names import settings as fields_of

C = TypeVar("C", bound=Config)


@dataclasses.dataclass(frozen=True)
class Size:
  """Size of a robot."""

  length: float  # of its legs, or the reach of an arm [m]
  mass: float  # [kg]


# Powers of length, time and torque in the unit of a setting. A weight has the inverse unit of its term.
POWERS: dict[str, tuple[int, int, int]] = {
  "command_forward": (1, -1, 0),
  "command_sideways": (1, -1, 0),
  "command_turn": (0, -1, 0),
  "start_velocity": (1, -1, 0),
  "push_speed": (1, -1, 0),
  "flight_seconds": (0, 1, 0),
  "step_seconds": (0, 1, 0),
  "swing_height": (1, 0, 0),
  "reward_vertical": (-2, 2, 0),
  "reward_rocking": (0, 2, 0),
  "reward_effort": (0, 0, -2),
  "reward_flight": (0, -1, 0),
  "reward_slip": (-2, 2, 0),
  "reward_swing": (-2, 0, 0),
  "slide_speed": (1, 0, 0),  # of an arm, which moves at the pace of its servos
  "precise_distance": (1, 0, 0),
  "reward_distance": (-1, 0, 0),
}


def similar(config: C, settings: Mapping[str, float], size: Size, like: Size) -> C:
  """Return a config for a robot of a size, like another one's.

  `settings` replace defaults of the other one. A setting that differs from its default is the user's, and
  stays as it is.
  """
  length = size.length / like.length
  units = length, math.sqrt(length), length * size.mass / like.mass
  defaults, changed = fields_of(type(config)(), ""), {}
  for name, value in fields_of(config, "").items():
    if value == defaults[name] and (name in settings or name in POWERS):
      powers = POWERS.get(name, (0, 0, 0))
      scale = math.prod(unit**power for unit, power in zip(units, powers, strict=True))
      changed[name] = settings.get(name, value) * scale
  return dataclasses.replace(config, **changed)
