"""Errors in task files, reported in one line with the file, the line and the function."""

import difflib
import functools
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar


class TaskError(ValueError):
  """A mistake in a task's file; the message is one line that names it."""


class SettingError(TaskError):
  """A mistake in the settings of a task, which says all: no line of the task's file is to blame."""


@contextmanager
def task_errors(files: Callable[[], Collection[str]]) -> Iterator[None]:
  """Turn an exception raised in one of these files into a TaskError that names file, line and function.

  Raises TaskError too if the block changes one of torch's global settings, on which the trainer relies.
  """
  before = _global_settings()
  try:
    yield
  except SettingError:
    raise
  except (Exception, SystemExit) as error:
    location = _location(error, files())
    if location is None:
      raise
    raise TaskError(f"{location}: {_text(error)}") from error
  for name, value in _global_settings().items():
    if value != before[name]:
      raise TaskError(f"the task changes torch's {name} to {value}, but the trainer relies on it: leave it")


def _global_settings() -> dict[str, object]:
  import torch  # noqa: PLC0415 (the names of the tasks need no torch)

  try:
    device = str(torch.get_default_device())
  except (AssertionError, RuntimeError):  # torch asks for it, and it is not there
    device = "one that this machine lacks"
  return {
    "default dtype": torch.get_default_dtype(),
    "default device": device,
    "grad mode": torch.is_grad_enabled(),
    "inference mode": torch.is_inference_mode_enabled(),
  }


S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def reports_task_errors(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
  """Apply `task_errors` to a method, for the files that define the class of its object."""

  @functools.wraps(method)
  def call(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
    import torch  # noqa: PLC0415

    if torch.compiler.is_compiling():  # its errors belong to the trace
      return method(self, *args, **kwargs)
    with task_errors(lambda: _files(type(self))):
      return method(self, *args, **kwargs)

  return call


def _files(kind: type) -> frozenset[str]:
  """Return the files that define the class of a task and its parents, except the base's."""
  modules = [sys.modules.get(part.__module__) for part in kind.__mro__]
  files = [getattr(module, "__file__", None) for module in modules]
  core = Path(__file__).parent
  base = core.parent / "base.py"
  return frozenset(file for file in files if file and Path(file) != base and core not in Path(file).parents)


def _location(error: BaseException, files: Collection[str]) -> str | None:
  """Return the innermost line of the traceback in one of the files, or None if there is none."""
  if isinstance(error, SyntaxError) and error.filename and error.filename in files:
    return f"{_short(error.filename)}, line {error.lineno}"
  if isinstance(error, SyntaxError) and error.filename is None and len(files) == 1:  # null bytes
    return _short(*files)
  frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
  if not frames:
    return None
  function = "" if frames[-1].name == "<module>" else f", in {frames[-1].name}"
  return f"{_short(frames[-1].filename)}, line {frames[-1].lineno}{function}"


def _short(file: str) -> str:
  """Return a path, relative to the working directory if it is inside it."""
  path = Path(file)
  return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _text(error: BaseException) -> str:
  """Return the message of an error in one line, after its type unless it is a ValueError."""
  words = str(error)
  if isinstance(error, SyntaxError):
    words = error.msg if error.filename else f"{error.msg}: save the file as UTF-8 text"
  elif isinstance(error, SystemExit):
    words = "the file ends the program; raise an error where it cannot go on"
  elif isinstance(error, KeyError):  # its text is in quotes
    words = str(error.args[0])
  elif isinstance(error, AttributeError) and error.obj is not None:
    near = difflib.get_close_matches(str(error.name), dir(error.obj), n=1)
    words += "".join(f"; the nearest is '{name}'" for name in near)
    if type(error.obj).__name__ == "Simulation":
      words += "; name in outputs what it should compute"
  text = " ".join(words.split())
  return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"
