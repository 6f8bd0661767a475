"""Settings of a robot like another one of different size and weight.

Two robots of the same shape move alike if lengths are in proportion to their legs or arms, times to the root
of these (Froude's similarity, Alexander and Jayes 1983), and torques to weight times this length. So do the
rewards that they get, if each weight is scaled by the inverse of its term. The weights also follow the
duration of a control step.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from tasks.base import Config

C = TypeVar("C", bound=Config)
OF_OTHER = "of the other robot"  # key of that robot's value in the metadata of a setting


@dataclasses.dataclass(frozen=True)
class Size:
  """Size of a robot."""

  length: float  # of its legs, or the reach of an arm [m]
  mass: float  # [kg]
  step: float = 0.02  # duration of a control step [s]


# Powers of length, time, torque and control step in the unit of a setting. A weight has the inverse unit of
# its term. Rewards are per step: what happens once, such as a fall, counts less among more steps, and so does
# the squared change since the last step, which is smaller.
POWERS: dict[str, tuple[int, int, int, int]] = {
  "command_forward": (1, -1, 0, 0),
  "command_sideways": (1, -1, 0, 0),
  "command_turn": (0, -1, 0, 0),
  "start_velocity": (1, -1, 0, 0),
  "push_speed": (1, -1, 0, 0),
  "step_seconds": (0, 1, 0, 0),
  "swing_height": (1, 0, 0, 0),
  **dict.fromkeys(("terrain_size", "terrain_cell", "start_offset"), (1, 0, 0, 0)),
  **dict.fromkeys(("scan_length", "scan_width", "scan_spacing"), (1, 0, 0, 0)),
  "reward_vertical": (-2, 2, 0, 0),
  "reward_rocking": (0, 2, 0, 0),
  "reward_effort": (0, 0, -2, 0),
  "reward_fallen": (0, 0, 0, -1),
  "reward_change": (0, 0, 0, -2),
  "reward_slip": (-2, 2, 0, 0),
  "reward_swing": (-2, 0, 0, 0),
  "slide_speed": (1, 0, 0, 0),  # of an arm, which moves at the pace of its servos
  "precise_distance": (1, 0, 0, 0),
  "reward_distance": (-1, 0, 0, 0),
}


def adapted(names: Collection[str] = ()) -> Callable[[type[C]], type[C]]:
  """Return a decorator of a Config: its settings of POWERS and `names` are null, unless the user gives them.

  `similar` then takes the default of the other robot. So a value that is given is taken as it is, the default
  too.
  """

  def adapt(kind: type[C]) -> type[C]:
    changed = []
    for field in dataclasses.fields(kind):
      if field.name in POWERS or field.name in names:
        meaning = f"{field.metadata['help']}; null: as of a similar robot"
        metadata = field.metadata | {"help": meaning, OF_OTHER: field.default}
        changed.append((field.name, field.type | None, dataclasses.field(default=None, metadata=metadata)))  # type: ignore[operator]
    made = dataclasses.make_dataclass(kind.__name__, changed, bases=(kind,))
    made.__doc__, made.__module__ = kind.__doc__, kind.__module__
    return made

  return adapt


def similar(config: C, settings: Mapping[str, float], size: Size, like: Size) -> C:
  """Return an `adapted` config for a robot of a size: null settings are scaled from another robot's.

  `settings` replace defaults of the other one.
  """
  length = size.length / like.length
  units = length, math.sqrt(length), length * size.mass / like.mass, size.step / like.step
  changed = {}
  for field in dataclasses.fields(config):
    if OF_OTHER in field.metadata and getattr(config, field.name) is None:
      powers = POWERS.get(field.name, (0, 0, 0, 0))
      scale = math.prod(unit**power for unit, power in zip(units, powers, strict=True))
      changed[field.name] = settings.get(field.name, field.metadata[OF_OTHER]) * scale
  return dataclasses.replace(config, **changed)
