"""Python's part of the state of objects: the numbers and texts in their attributes, without tensors."""

import sys
from collections import deque
from collections.abc import Mapping, Set
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor

PLAIN = (int, float, complex, str, bytes, type(None))
DEPTH = 3  # attributes and containers from the object to a number
CONTAINERS = (list, tuple, deque, Mapping, Set)
SKIPPED = (Tensor, FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


def python_state(objects: Mapping[str, Any]) -> dict[str, Any]:
  """Return the numbers and texts that named objects hold, by path: in their attributes, theirs and so on.

  The lengths of containers are among them, and what the objects' classes and their modules hold. Tensors,
  arrays and code are left out, and what is deeper than DEPTH: models have a million numbers.
  """
  found: dict[str, Any] = {}
  roots = dict(objects) | {name: own for value in objects.values() for name, own in _code(value).items()}
  seen, left = set[int](), deque((name, own, 0) for name, own in roots.items())
  while left:
    path, value, depth = left.popleft()
    if isinstance(value, PLAIN):
      found[path] = value
    elif depth < DEPTH and id(value) not in seen:
      seen.add(id(value))
      parts = _parts(value)
      if isinstance(value, CONTAINERS):
        found[f"len({path})"] = len(parts)
      left += [(path + place, part, depth + 1) for place, part in parts if not isinstance(part, SKIPPED)]
  return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
  """Return the path of what differs between two states, or is in one of them alone; "" if nothing does."""
  if different := [path for path in before if path in after and not _equal(before[path], after[path])]:
    return different[0]
  return next(iter(sorted(before.keys() ^ after.keys())), "")


def _code(own: object) -> dict[str, dict[str, Any]]:
  """Return what the classes of an object and their modules keep, by name, without those of Python itself."""
  found: dict[str, dict[str, Any]] = {}
  for kind in type(own).__mro__:
    name = kind.__module__
    if name in sys.modules and name.partition(".")[0] not in sys.stdlib_module_names:
      found |= {name: _named(vars(sys.modules[name])), f"{name}.{kind.__qualname__}": _named(vars(kind))}
  return found


def _named(names: Mapping[str, Any]) -> dict[str, Any]:
  """Return what a class or a module keeps under names of its author, not of Python's own."""
  return {name: value for name, value in names.items() if not name.startswith("__")}


def _parts(value: Any) -> list[tuple[str, Any]]:
  if isinstance(value, Mapping):
    return [(f"[{key!r}]", part) for key, part in value.items()]
  if isinstance(value, list | tuple | deque):
    return [(f"[{index}]", part) for index, part in enumerate(value)]
  if isinstance(value, Set):
    return [(f"[{key!r}]", key) for key in value]
  return [(f".{name}", part) for name, part in getattr(value, "__dict__", {}).items()]


def _equal(one: object, other: object) -> bool:
  return one is other or one == other  # what is no number differs from itself
