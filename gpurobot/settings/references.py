"""Functions and classes of the user's own code, by a reference `<file.py or module>:<name>`."""

import contextlib
import importlib
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpurobot.settings.config import ConfigError
from tasks.core.errors import task_errors
from tasks.core.files import load_file


def find(key: str, reference: str) -> Callable[..., Any]:
  """Return the function or class that the setting `key` refers to, such as "my_network.py:Convolutions".

  The file or module is imported. Raises ConfigError if there is none, TaskError if its code fails.
  """
  place, name = _split(key, reference)
  try:
    found = operator.attrgetter(name)(_module(key, place))
  except AttributeError as error:
    raise ConfigError(f"{key}={reference}: {place} has no {name}") from error
  if not callable(found):
    raise ConfigError(f"{key}={reference}: {name} is {found!r}, and no function or class")
  return found


def _split(key: str, reference: str) -> tuple[str, str]:
  place, _, name = reference.rpartition(":")
  if not place or not name:
    raise ConfigError(
      f"{key}={reference} is no reference; write {key}=<file.py or module>:<function or class>"
    )
  return place, name


def _module(key: str, place: str) -> Any:
  if place.endswith(".py"):
    if not Path(place).is_file():
      raise ConfigError(f"{key}={place}: there is no such file in {Path(place).absolute().parent}")
    return load_file(Path(place))
  try:
    return importlib.import_module(place)
  except ModuleNotFoundError as error:
    if error.name is None or not f"{place}.".startswith(f"{error.name}."):
      raise  # the module exists, but one of its own imports is missing
    raise ConfigError(f"{key}={place}: there is no such module; a file ends in .py") from error


def name_of(key: str, found: Callable[..., Any]) -> str:
  """Return the reference to a function or class; raise ConfigError if none leads back to it."""
  place, name = getattr(found, "__module__", ""), getattr(found, "__qualname__", "")
  module, known = sys.modules.get(str(place)), None
  with contextlib.suppress(AttributeError):  # a function within another, a lambda, an object
    known = operator.attrgetter(name)(module)
  if known is not found:
    raise ConfigError(f"{key}: {found!r} has no name in a module; define it there, outside of any function")
  return f"{place}:{name}"


@contextmanager
def own_errors(key: str, reference: str) -> Iterator[None]:
  """Turn an error in the file of a function or class into a TaskError that names file and line."""
  module = _module(key, _split(key, reference)[0])
  with task_errors(lambda: [file for file in [getattr(module, "__file__", None)] if file]):
    yield
