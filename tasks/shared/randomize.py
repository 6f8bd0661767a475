"""Randomisation: environments whose robots differ, each drawn from what the model's file says.

A task names the fields in `vary`, makes a `Randomization` in `setup`, and adds `draw()` to its
`initial_state` for another robot in each episode, or passes it to `every` for changes within one. `apply()`
in `setup` draws once, for good. Outside of training all robots are the file's.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.base import Task
from tasks.core.names import hint
from tasks.core.shapes import like

Index = slice | Tensor | int
ALL = slice(None)


@dataclass(frozen=True)
class Effect:
  """What a drawn number does to the part of a field [num_envs, ...] at `index` (after the environment)."""

  field: str
  index: tuple[Index, ...]
  act: Callable[[Tensor, Tensor], Tensor]  # (the part, numbers that broadcast to it) -> the new part

  def apply(self, fields: Mapping[str, Tensor], drawn: Tensor) -> None:
    """Change the field in place by numbers [num_envs] or of the part's own shape."""
    field, where = fields[self.field], (ALL, *self.index)
    part = field[where]
    field[where] = self.act(part, like(drawn, part) if drawn.ndim == 1 else drawn)


@dataclass(frozen=True)
class Draw:
  """A number per environment in [low, high), and its effects.

  `each`: a number for each element of the first effect's part. `logarithmic`: the number's logarithm is
  uniform, so that halves are as likely as doubles.
  """

  low: float
  high: float
  effects: tuple[Effect, ...]
  each: bool = False
  logarithmic: bool = False

  def __post_init__(self) -> None:
    if not self.low <= self.high or (self.logarithmic and self.low <= 0):
      least = "0 < low" if self.logarithmic else "low"
      raise ValueError(f"a number is drawn in [{self.low:g}, {self.high:g}): write {least} <= high")


def scale(field: str, low: float, high: float, *index: Index, each: bool = False, log: bool = False) -> Draw:
  """Multiply a field, or its part at `index`, by a number."""
  return Draw(low, high, (Effect(field, index, torch.mul),), each, log)


def add(field: str, low: float, high: float, *index: Index, each: bool = False) -> Draw:
  """Add a number to a field, in the field's unit."""
  return Draw(low, high, (Effect(field, index, torch.add),), each)


def put(field: str, low: float, high: float, *index: Index, each: bool = False, log: bool = False) -> Draw:
  """Put a number in the place of the file's."""
  return Draw(low, high, (Effect(field, index, lambda part, drawn: drawn.expand_as(part)),), each, log)


def friction(low: float, high: float, geoms: Index = ALL) -> Draw:
  """Put a coefficient of sliding friction; of two geoms in contact the larger one counts, as in MuJoCo."""
  return put("geom_friction", low, high, geoms, 0)


def mass(low: float, high: float, bodies: Index = ALL) -> Draw:
  """Multiply the mass of bodies by a number; their shape stays, so inertia follows in proportion."""
  return Draw(
    low, high, (Effect("body_mass", (bodies,), torch.mul), Effect("body_inertia", (bodies,), torch.mul))
  )


def stiffness(low: float, high: float, actuators: Index = ALL) -> Draw:
  """Multiply the position gain kp of position actuators by a number."""
  gain, bias = Effect("actuator_gainprm", (actuators, 0), torch.mul), ("actuator_biasprm", (actuators, 1))
  return Draw(low, high, (gain, Effect(*bias, torch.mul)))


def damping(low: float, high: float, actuators: Index = ALL) -> Draw:
  """Multiply the velocity gain kv of position actuators by a number."""
  return scale("actuator_biasprm", low, high, actuators, 2)


class Randomization:
  """Draws the fields of a task's robots, by name of what is drawn (each has random numbers of its own)."""

  def __init__(self, task: Task, draws: Mapping[str, Draw]) -> None:
    """Check that every field that is drawn is in the task's `vary`; raise ValueError at one that is not."""
    self._task, self._draws = task, draws
    self._defaults: dict[str, Tensor] = {}
    for name, draw in draws.items():
      for field in (effect.field for effect in draw.effects):
        if field not in task.vary:
          raise ValueError(f"randomising '{name}': vary lacks '{field}', {hint(field, task.vary)}")
        self._defaults[field] = task.constant(getattr(task.model, field))

  def draw(self) -> dict[str, Tensor]:
    """Return candidates of all fields [num_envs, ...], drawn from the model's own values; none in evaluation.

    Draws on the same field follow each other in their order.
    """
    if not self._task.training:
      return {}
    fields = {
      name: value.expand(self._task.num_envs, *value.shape).clone() for name, value in self._defaults.items()
    }
    for name, draw in self._draws.items():
      drawn = self._numbers(f"randomise {name}", draw, fields[draw.effects[0].field])
      for effect in draw.effects:
        effect.apply(fields, drawn)
    return fields

  def apply(self) -> None:
    """Draw once, for good: numbers that no episode changes cost nothing in a step."""
    for name, value in self.draw().items():
      getattr(self._task.sim, name).copy_(value)

  def _numbers(self, purpose: str, draw: Draw, field: Tensor) -> Tensor:
    """Return one number per environment [num_envs], or one for each element of the part."""
    shape = field[(ALL, *draw.effects[0].index)].shape[1:] if draw.each else ()
    low, high = (math.log(draw.low), math.log(draw.high)) if draw.logarithmic else (draw.low, draw.high)
    drawn = self._task.random.uniform(purpose, tuple(shape), low, high)
    return drawn.exp() if draw.logarithmic else drawn
