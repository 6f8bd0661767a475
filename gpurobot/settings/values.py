"""Values of settings: the value of a text for a type, and the values that a type accepts."""

import typing
from collections.abc import Sequence
from enum import Enum
from types import UnionType
from typing import Any

from omegaconf import OmegaConf

from tasks.core.words import suggestion

SCALARS = (bool, int, float, str)


def fitting(value: Any, kind: Any) -> Any:
  """Return a string or an object as the value of a setting of some type.

  A whole number may come as a float, such as 1e6. Raises an error of any type if the value does not fit;
  OmegaConf checks what this function accepts.
  """
  parsed = from_text(value, kind) if isinstance(value, str) else value
  if isinstance(parsed, float) and parsed.is_integer() and int in (kind, *typing.get_args(kind)):
    parsed = int(parsed)
  # OmegaConf takes a number for a bool, and a list in a list of numbers.
  nested = isinstance(parsed, Sequence) and any(isinstance(item, list | tuple | dict) for item in parsed)
  if (kind is bool and not isinstance(parsed, bool)) or (nested and _element(kind) in SCALARS):
    raise ValueError(parsed)
  return parsed


def from_text(text: str, kind: Any) -> Any:
  """Return the value of a text for a setting of some type; raise ValueError if it has none.

  Numbers are decimal, strings are taken as they are, lists are [a,b], and `null` is None. Other types are
  YAML.
  """
  kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, UnionType) else (kind,)
  if text == "null" and type(None) in kinds:
    return None
  if str in kinds or any(map(_is_enum, kinds)):
    return text
  if bool in kinds:
    return {"true": True, "false": False}[text.lower()]
  if int in kinds or float in kinds:
    return int(text) if int in kinds and text.lstrip("+-").isdecimal() else float(text)
  element = _element(kinds[0])
  if element in SCALARS:
    if text[0] + text[-1] != "[]":
      raise ValueError(text)
    return [from_text(part.strip(), element) for part in text[1:-1].split(",") if text[1:-1].strip()]
  return OmegaConf.select(OmegaConf.from_dotlist([f"x={text}"]), "x")


def expected(kind: Any, text: str) -> str:
  """Describe the values that a setting of some type accepts, and name the one nearest to `text`."""
  if _is_enum(kind):
    names = [member.name for member in kind]
    return f"one of {', '.join(names)}{suggestion(text, names)}"
  if kind is bool:
    return f"true or false{suggestion(text, ['true', 'false'])}"
  if _element(kind) is not None:
    return f"a list, each element {expected(_element(kind), text)}"
  words = {int: "a whole number", float: "a number", str: "a string"}
  return next((words[part] for part in (kind, *typing.get_args(kind)) if part in words), f"a {kind}")


def plain(value: Any) -> Any:
  """Return the number, string or list that stands for a value in a file."""
  if isinstance(value, Enum):
    return value.name
  if isinstance(value, list | tuple):
    return [plain(item) for item in value]
  return value


def to_text(value: Any) -> str:
  """Return a plain value as a user writes it on the command line."""
  if value is None or isinstance(value, bool):
    return {None: "null", True: "true", False: "false"}[value]
  return f"[{','.join(map(to_text, value))}]" if isinstance(value, list) else str(value)


def _element(kind: Any) -> Any:
  """Return the type of a list's elements, or None if the type is no list."""
  return typing.get_args(kind)[0] if typing.get_origin(kind) is list else None


def _is_enum(kind: Any) -> bool:
  return isinstance(kind, type) and issubclass(kind, Enum)
