"""Tasks, one module each, and the loader that finds them by name, dotted module path or file.

Every module of this folder except `base.py` is a task, and so is every module of `gym/`. One of `dm/` has
several tasks. `shared/` holds what several tasks use, `core/` the parts of `base.py`.
"""

import dataclasses
import difflib
import functools
import importlib
import importlib.util
import inspect
import shlex
import sys
from pathlib import Path
from types import ModuleType

from tasks.core.errors import TaskError, task_errors
from tasks.core.files import load_file
from tasks.dm import MISSING, TASKS

_FOLDER = Path(__file__).parent


class UnknownTask(TaskError):
  """Error of an unknown task name; the message is one line with the nearest known names."""


class UntrustedTask(TaskError):
  """Error of a task that a run folder or `.pt` file names, and the user does not."""


def available() -> list[str]:
  """Return the names of all tasks of this folder, sorted."""
  return sorted([*_modules(), *_variants()])


def load(name: str, source: str | Path | None = None, given: str | None = None) -> ModuleType:
  """Return the module of a task: `Config`, `Task` and, to override trainer settings, `PPO` and `TRAIN`.

  `name` is one of `available()`, a dotted module path, or the path of a `.py` file. If it is what the run
  folder or `.pt` file `source` says, and not the user, `given` is the name that the user says. Raises
  UntrustedTask if that does not suffice to import it, UnknownTask if nothing has that name, and TaskError if
  the module is not a valid task.
  """
  if source is not None:
    name = _trusted(name, Path(source), given)
  if name.endswith(".py"):
    module = _load_file(Path(name))
  elif name in (variants := _variants()):
    module = _variant(*variants[name])
  elif name in (modules := _modules()):
    module = importlib.import_module(modules[name])
  else:
    module = _load_dotted(name)
  _check(name, module)
  return module


def module_name(name: str) -> str | None:
  """Return the dotted path of the module with a task's Config; None if the task is not of this folder."""
  module, _ = _variants().get(name, (None, ""))
  return f"{__name__}.dm.{module.lower()}" if module else _modules().get(name)


def _trusted(name: str, source: Path, given: str | None) -> str:
  """Return the task to import for `source`, which says that it is `name`; raise UntrustedTask.

  Importing runs code, so a task outside of this package is the user's to name, wherever its file is now.
  """
  if given is None:
    if name in available() or name in _modules().values():
      return name
    _check_outside(name, source)
    argument = shlex.quote(f"task={name}")
    raise UntrustedTask(f"'{source}' was trained on the task '{name}', which runs code: add {argument}")
  if Path(given).name != Path(name).name:
    raise UntrustedTask(f"'{source}' was trained on the task '{name}', not on '{given}'")
  _check_outside(given, source)
  return given


def _check_outside(name: str, source: Path) -> None:
  """Raise UntrustedTask if the code of a task lies in the folder of `source`, and so came along with it.

  A folder in which the user works is the user's own.
  """
  folder = (source if source.is_dir() else source.parent).resolve()
  if Path.cwd().is_relative_to(folder):
    return
  places = [Path(name)]
  if not name.endswith(".py"):
    stems = [Path(entry, *name.split(".")) for entry in sys.path]
    places = [place for stem in stems for place in (stem, stem.with_suffix(".py"))]
  for place in places:
    if place.exists() and place.resolve().is_relative_to(folder):
      raise UntrustedTask(
        f"'{source}' came with the code of its task, '{place}', which is not run: move it to another folder "
        "and write task=<its new path>"
      )


def _check(name: str, module: ModuleType) -> None:
  """Raise TaskError if the module of a task lacks a required part or has one of the wrong type."""
  missing = [part for part in ("Config", "Task") if not isinstance(getattr(module, part, None), type)]
  if missing:
    raise TaskError(f"task '{name}' is a module without a class {' and '.join(missing)}")
  if "__dataclass_fields__" not in vars(module.Config):
    raise TaskError(f"task '{name}': Config is no dataclass: write @dataclass above it")
  if "config" not in inspect.signature(module.Task).parameters:
    raise TaskError(f"task '{name}': Task takes no config: write class Task(base.Task)")
  for part in ("TRAIN", "PPO"):
    if not isinstance(getattr(module, part, {}), dict):
      raise TaskError(f"task '{name}': {part} is no dictionary: write {part} = {{'key': value}}")


def _modules() -> dict[str, str]:
  """Return the dotted module path of every task by name: gym/half_cheetah.py is `gym/HalfCheetah-v5`."""
  own, gym = (
    [path.stem for path in sorted(folder.glob("*.py")) if path.stem != "base" and path.stem[0] != "_"]
    for folder in (_FOLDER, _FOLDER / "gym")
  )
  modules = {stem: f"{__name__}.{stem}" for stem in own}
  for stem in gym:
    name = "".join(word.capitalize() for word in stem.split("_"))
    modules[f"gym/{name}-v5"] = f"{__name__}.gym.{stem}"
  return modules


def _variants() -> dict[str, tuple[str, str]]:
  """Return the module of dm/ and its task, for every name: walker.py has the task run, `dm/walker_run`."""
  return {f"dm/{module}_{task}": (module, task) for module, parts in TASKS.items() for task in parts}


@functools.cache
def _variant(name: str, task: str) -> ModuleType:
  """Return a copy of a module of dm/ with the defaults of one of its tasks."""
  module = importlib.import_module(f"{__name__}.dm.{name.lower()}")
  variant = ModuleType(f"{module.__name__}_{task}", module.__doc__)
  vars(variant).update({part: value for part, value in vars(module).items() if part[:2] != "__"})
  given = {field.name: field for field in dataclasses.fields(module.Config)}
  changed = [
    (key, given[key].type, dataclasses.field(default=value, metadata=given[key].metadata))
    for key, value in TASKS[name][task].items()
  ]
  variant.Config = dataclasses.make_dataclass("Config", changed, bases=(module.Config,))  # type: ignore[attr-defined]
  variant.__file__ = module.__file__
  return variant


def _load_file(path: Path) -> ModuleType:
  if not path.is_file():
    hint = f"; the task of that name is task={path.stem}" if path.stem in _modules() else ""
    raise UnknownTask(f"there is no task file '{path.name}' in {path.absolute().parent}{hint}")
  return load_file(path)


def _load_dotted(name: str) -> ModuleType:
  try:
    spec = importlib.util.find_spec(name) if "." in name.strip(".") and name[0] != "." else None
  except ModuleNotFoundError as error:
    if error.name is None or not f"{name}.".startswith(f"{error.name}."):
      raise  # the package exists, but one of its own imports is missing
    spec = None
  if spec is not None:
    with task_errors(lambda: [str(spec.origin)]):
      return importlib.import_module(name)
  if (file := Path(f"{name.replace('.', '/')}.py")).is_file():
    hint = ", and PYTHONPATH=. finds its package" if "." in name else ""
    raise UnknownTask(f"unknown task '{name}'; the file is task={file}{hint}")
  if (reason := MISSING.get(name.removeprefix("dm/"))) is not None:
    raise UnknownTask(f"there is no task '{name}': {reason}")
  if Path(name).suffix in {".urdf", ".xml"}:
    raise UnknownTask(f"'{name}' is a robot's file, not a task; write task=walk env.robot={name}")
  near = difflib.get_close_matches(name, available(), n=3, cutoff=0.4)
  hint = f"nearest: {', '.join(near)}" if near else f"available: {', '.join(available())}"
  raise UnknownTask(f"unknown task '{name}'; {hint}")
