"""Bodies in the order of the tree: in a program that repeats, those alike are one loop.

`physics/trace/each.py` builds the loops.
"""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import groupby

from physics.model.model import Model
from physics.trace.each import Each, alike, follow, places
from physics.trace.trace import Program

LONG = 50  # bodies beyond which a program repeats: 100 hinges build in 3 s, not 100; 24 bodies are slower


def is_long(model: Model) -> bool:
  """Return whether a model has enough bodies for loops over them to pay off."""
  return model.nbody - 1 > LONG


def bodies(model: Model, program: Program | None) -> Iterator[Each]:
  """Yield all bodies but the world, parents first."""
  for run in _runs(model):
    yield from places(program, run)


def leaves_first(model: Model, program: Program | None) -> Iterator[Each]:
  """Yield all bodies but the world, children first."""
  for run in reversed(_runs(model)):
    yield from places(program, run[::-1])


def dofs(model: Model, body: Each) -> list[Each]:
  """Return the degrees of freedom of a body's joints."""
  first = follow(model.body_dofadr, body)
  return [first + k for k in range(alike(model.body_dofnum, body))]


def joints(model: Model, body: Each) -> list[Each]:
  """Return the joints of a body."""
  first = follow(model.body_jntadr, body)
  return [first + k for k in range(alike(model.body_jntnum, body))]


@lru_cache(maxsize=8)
def _runs(model: Model) -> list[list[int]]:
  """Return the bodies but the world, in order, as runs of consecutive alike ones."""
  return [list(run) for _, run in groupby(range(1, model.nbody), lambda body: _kind(model, body))]


def _kind(model: Model, body: int) -> Hashable:
  """Return the properties shared by bodies in a loop: joint types, and whether joints move their parents."""
  parent = int(model.body_parentid[body])
  kinds = [int(model.jnt_type[joint]) for joint in joints(model, body)]
  moved = (model.body_treeid[body] >= 0, model.body_treeid[parent] >= 0)
  return (*kinds, *map(bool, moved), int(model.body_mocapid[body]))
