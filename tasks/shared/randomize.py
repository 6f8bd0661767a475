"""Domain randomisation: model fields that differ between environments, relative to the robot file.

A task names the fields in `vary` and creates a `Randomization` in `setup`. It adds `draw()` to its
`initial_state` for new values in each episode, or passes it to `every` for changes within an episode.
`apply()` in `setup` draws once, permanently. Outside of training, all environments use the robot file.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks.base import Task
from tasks.core.names import hint
from tasks.core.shapes import like

Index = slice | Tensor | int
ALL = slice(None)


@dataclass(frozen=True)
class Effect:
  """Effect of a random number on a field [num_envs, ...], at `index` of the dimensions after the first."""

  field: str
  index: tuple[Index, ...]
  act: Callable[[Tensor, Tensor], Tensor]  # (old values, broadcastable random numbers) -> new values

  def apply(self, fields: Mapping[str, Tensor], drawn: Tensor) -> None:
    """Change the field [num_envs, ...] in place by numbers [num_envs] or [num_envs, *indexed part]."""
    field, where = fields[self.field], (ALL, *self.index)
    part = field[where]
    field[where] = self.act(part, like(drawn, part) if drawn.ndim == 1 else drawn)


@dataclass(frozen=True)
class Draw:
  """Random number in [low, high) per environment, and its effects.

  `each`: one number for each element that the first effect changes. `logarithmic`: the logarithm of the
  number is uniform, so that halving is as likely as doubling.
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

  @property
  def ends(self) -> tuple[float, float]:
    """Range of the uniform draw: [low, high), or its logarithm."""
    return self.scale_of(self.low), self.scale_of(self.high)

  def scale_of(self, number: float) -> float:
    """Return a number, or its logarithm if the logarithm is uniform."""
    return math.log(number) if self.logarithmic else number


def scale(field: str, low: float, high: float, *index: Index, each: bool = False, log: bool = False) -> Draw:
  """Return a draw that multiplies a field, or its part at `index`, by a random number."""
  return Draw(low, high, (Effect(field, index, torch.mul),), each, log)


def add(field: str, low: float, high: float, *index: Index, each: bool = False) -> Draw:
  """Return a draw that adds a random number to a field, in the unit of the field."""
  return Draw(low, high, (Effect(field, index, torch.add),), each)


def put(field: str, low: float, high: float, *index: Index, each: bool = False, log: bool = False) -> Draw:
  """Return a draw that replaces the values of a field by a random number."""
  return Draw(low, high, (Effect(field, index, lambda part, drawn: drawn.expand_as(part)),), each, log)


def friction(low: float, high: float, geoms: Index = ALL) -> Draw:
  """Return a draw of the sliding friction of geoms; in a contact the larger one counts, as in MuJoCo."""
  return put("geom_friction", low, high, geoms, 0)


def mass(low: float, high: float, bodies: Index = ALL) -> Draw:
  """Return a draw that scales the mass of bodies, and their inertia in proportion."""
  return Draw(
    low, high, (Effect("body_mass", (bodies,), torch.mul), Effect("body_inertia", (bodies,), torch.mul))
  )


def stiffness(low: float, high: float, actuators: Index = ALL) -> Draw:
  """Return a draw that scales the position gain kp of position actuators."""
  gain, bias = Effect("actuator_gainprm", (actuators, 0), torch.mul), ("actuator_biasprm", (actuators, 1))
  return Draw(low, high, (gain, Effect(*bias, torch.mul)))


def damping(low: float, high: float, actuators: Index = ALL) -> Draw:
  """Return a draw that scales the velocity gain kv of position actuators."""
  return scale("actuator_biasprm", low, high, actuators, 2)


class Randomization:
  """Named draws of a task; each name has its own stream of random numbers."""

  def __init__(self, task: Task, draws: Mapping[str, Draw]) -> None:
    """Store the draws; raise ValueError if a field that they change is not in `vary` of the task."""
    self._task, self._draws = task, draws
    self._defaults: dict[str, Tensor] = {}
    for name, draw in draws.items():
      parts: list[Any] = [part for effect in draw.effects for part in effect.index]
      for word in (word for part in parts for word in (part if isinstance(part, list | tuple) else [part])):
        if isinstance(word, str):
          raise ValueError(f"randomising '{name}': write self.body_of('{word}') or the like, not '{word}'")
      for field in (effect.field for effect in draw.effects):
        if field not in task.vary:
          raise ValueError(f"randomising '{name}': vary lacks '{field}', {hint(field, task.vary)}")
        self._defaults[field] = task.constant(getattr(task.model, field))

  def draw(self) -> dict[str, Tensor]:
    """Return new values of all fields [num_envs, ...] by name, based on the model; empty in evaluation.

    Several draws on the same field are applied in order.
    """
    if not self._task.training:
      return {}
    fields = {
      name: value.expand(self._task.num_envs, *value.shape).clone() for name, value in self._defaults.items()
    }
    for name, draw in self._draws.items():
      drawn = self._numbers(name, draw, fields[draw.effects[0].field])
      for effect in draw.effects:
        effect.apply(fields, drawn)
    return fields

  def apply(self) -> None:
    """Draw once and write the fields; values that stay fixed cost no time in a step."""
    for name, value in self.draw().items():
      getattr(self._task.sim, name).copy_(value)

  def _numbers(self, name: str, draw: Draw, field: Tensor) -> Tensor:
    """Return random numbers [num_envs], or one for each element that the draw changes [num_envs, ...]."""
    shape = field[(ALL, *draw.effects[0].index)].shape[1:] if draw.each else ()
    drawn = self._uniform(name, draw, tuple(shape))
    return drawn.exp() if draw.logarithmic else drawn

  def _uniform(self, name: str, draw: Draw, shape: tuple[int, ...]) -> Tensor:
    """Return uniform numbers [num_envs, *shape] in the range of a draw, or of its logarithm."""
    return self._task.random.uniform(f"randomise {name}", shape, *draw.ends)


def pushed(task: Task, most: float) -> Tensor:
  """Return the task's qvel [num_envs, nv] with a random change of a free root's horizontal velocity.

  most: largest change along x and along y [m/s].
  """
  qvel = task.sim.qvel.clone()
  qvel[:, :2] += task.random.uniform("push", (2,), -most, most)
  return qvel
