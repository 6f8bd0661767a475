"""Python's part of the state of objects: the numbers and texts in their attributes, without tensors."""

import gc
import math
import pickle
import random
import sys
from collections import deque
from collections.abc import Mapping, Set
from functools import partial
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor

PLAIN = (Number, str, bytes, type(None))
MOST = 5000  # objects to visit, the nearest first: models have a million numbers
NEAR = 3  # attributes and containers from the object to a number that a caller may set between two calls
LARGE = 100_000  # arrays of more bytes are data, not state
CONTAINERS = (list, tuple, deque, Mapping, Set)
RANDOM = (random.Random, np.random.Generator, np.random.RandomState)
# Generators that the functions of `random` and `numpy.random` share.
SHARED: dict[str, Any] = {
  "random": vars(random)["_inst"],
  "numpy.random": vars(np.random.mtrand)["_rand"],
}
SKIPPED = (Tensor, BuiltinFunctionType, ModuleType, type)


def python_state(objects: Mapping[str, Any], depth: float = math.inf) -> dict[str, Any]:
  """Return the numbers and texts in the attributes of named objects, in theirs and so on, by path.

  They include the lengths of containers, small arrays, and the variables of closures, of the objects'
  classes and of their modules. They exclude tensors, code, and all that is deeper than `depth` attributes
  and containers, or beyond the MOST nearest objects.
  """
  found: dict[str, Any] = {}
  roots = dict(objects) | {name: own for value in objects.values() for name, own in _code(value).items()}
  seen = dict[int, Any]()  # by id: temporary objects stay alive, as their ids would be reused
  left = deque((name, own, 0) for name, own in roots.items())
  while left and len(seen) < MOST:
    path, value, above = left.popleft()
    if isinstance(value, PLAIN):
      found[path] = value
    elif above < depth and id(value) not in seen and not isinstance(value, SKIPPED):
      seen[id(value)] = value
      parts = _parts(value)
      if isinstance(value, CONTAINERS):
        found[f"len({path})"] = len([*value.keys()] if isinstance(value, Mapping) else value)
      left += [(path + place, part, above + 1) for place, part in parts]
  return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
  """Return the path of a value that differs between two states, or is in only one; "" if none does."""
  if different := [path for path in before if path in after and not _equal(before[path], after[path])]:
    return different[0]
  return next(iter(sorted(before.keys() ^ after.keys())), "")


def _code(own: object) -> dict[str, dict[str, Any]]:
  """Return the variables of an object's classes and their modules, by name, without Python's own."""
  found: dict[str, dict[str, Any]] = {}
  for kind in type(own).__mro__:
    name = kind.__module__
    if name in sys.modules and name.partition(".")[0] not in sys.stdlib_module_names:
      found |= {name: _named(vars(sys.modules[name])), f"{name}.{kind.__qualname__}": _named(vars(kind))}
  return found


def _named(names: Mapping[str, Any]) -> dict[str, Any]:
  """Return the variables of a class or a module, without names of Python's own."""
  return {name: value for name, value in names.items() if not name.startswith("__")}


def _parts(value: Any) -> list[tuple[str, Any]]:
  """Return the parts of an object with their places: a key, an index, or the name of an attribute."""
  if isinstance(value, MethodType):  # state that a tape repeats may change
    return [] if hasattr(value, "repeated") else [("", value.__self__), ("", value.__func__)]
  if hasattr(type(value), "tobytes"):  # of NumPy, and array.array
    return [("", value.tobytes())] if getattr(value, "nbytes", 0) <= LARGE else []
  if isinstance(value, RANDOM):
    return [("", pickle.dumps(value))]
  if type(value).__module__ == "itertools":
    return [("", repr(value))]  # as count(5)
  return _items(value) + [(f".{name}", part) for name, part in _attributes(value).items()]


def _items(value: Any) -> list[tuple[str, Any]]:
  """Return the items of a container, by key or index; none of other objects."""
  if isinstance(value, list | tuple | deque):
    return [(f"[{index}]", part) for index, part in enumerate(value)]
  if isinstance(value, Mapping | Set):
    parts = value.items() if isinstance(value, Mapping) else ((key, key) for key in value)
    named = ((key if isinstance(key, PLAIN) else index, part) for index, (key, part) in enumerate(parts))
    return [(f"[{name!r}]", part) for name, part in named]
  return []


def _attributes(value: Any) -> dict[str, Any]:
  """Return an object's attributes, a function's variables, or the parts of a `partial`, by name."""
  if isinstance(value, partial):
    return {"func": value.func, "args": value.args, "keywords": value.keywords}
  if isinstance(value, FunctionType):
    cells = map(gc.get_referents, value.__closure__ or ())
    own = {"__defaults__": value.__defaults__, "__kwdefaults__": value.__kwdefaults__} | vars(value)
    return own | dict(zip(value.__code__.co_freevars, cells, strict=True))
  if isinstance(value, Mapping | Set) and not isinstance(value, dict):  # as a TensorDict
    return {}
  state: Any = object.__getstate__(value)  # attributes, with `__slots__` apart
  dicts = filter(None, state if isinstance(state, tuple) else (state,))
  return {name: part for own in dicts for name, part in own.items()}


def _equal(one: object, other: object) -> bool:
  return one is other or one == other  # nan differs from itself
