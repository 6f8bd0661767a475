"""Python's part of the state of objects: the numbers and texts in their attributes, without tensors."""

from collections import deque
from collections.abc import Mapping, Set
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor

PLAIN = (int, float, complex, str, bytes, type(None))
DEPTH = 3  # attributes and containers from the object to a number
SKIPPED = (Tensor, FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


def python_state(objects: Mapping[str, Any]) -> dict[str, Any]:
  """Return the numbers and texts that named objects hold, by path: in their attributes, theirs and so on.

  Tensors, arrays and code are left out, and what is deeper than DEPTH: models have a million numbers.
  """
  found: dict[str, Any] = {}
  seen, left = set[int](), deque((name, own, 0) for name, own in objects.items())
  while left:
    path, value, depth = left.popleft()
    if isinstance(value, PLAIN):
      found[path] = value
    elif depth < DEPTH and id(value) not in seen and not isinstance(value, SKIPPED):
      seen.add(id(value))
      left += [(f"{path}{place}", part, depth + 1) for place, part in _parts(value)]
  return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
  """Return the path of what differs between two states, or is in one of them alone; "" if nothing does."""
  if different := [path for path in before if path in after and not _equal(before[path], after[path])]:
    return different[0]
  return next(iter(sorted(before.keys() ^ after.keys())), "")


def _parts(value: Any) -> list[tuple[str, Any]]:
  if isinstance(value, Mapping):
    return [(f"[{key!r}]", part) for key, part in value.items()]
  if isinstance(value, list | tuple):
    return [(f"[{index}]", part) for index, part in enumerate(value)]
  if isinstance(value, Set):
    return [(f"[{key!r}]", key) for key in value]
  return [(f".{name}", part) for name, part in getattr(value, "__dict__", {}).items()]


def _equal(one: object, other: object) -> bool:
  return one is other or one == other  # what is no number differs from itself
