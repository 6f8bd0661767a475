"""The tasks: one module each, found by name; a task elsewhere loads by its dotted module path or its file.

Every module of this folder but `base.py` is a task, and so is every module of `gym/`. What several of them
are built from is in `shared/`, what the base is built from in `core/`.
"""

import difflib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from tasks.core.errors import TaskError, task_errors

_FOLDER = Path(__file__).parent


class UnknownTask(TaskError):
  """A name that is no task. Its message is one line that names the nearest valid words."""


def available() -> list[str]:
  """Return the names of the tasks of this folder, sorted."""
  return sorted(_modules())


def load(name: str) -> ModuleType:
  """Return the module of a task: it has `Config`, `Task` and, where it overrides trainer settings, `PPO`.

  `name` is one of `available`, a dotted module path or the path of a `.py` file. Raises UnknownTask, or
  TaskError where the module is not what a task's has to be.
  """
  if name.endswith(".py"):
    module = _load_file(Path(name))
  elif name in (modules := _modules()):
    module = importlib.import_module(modules[name])
  else:
    module = _load_dotted(name)
  _check(name, module)
  return module


def _check(name: str, module: ModuleType) -> None:
  """Raise TaskError where a task's module lacks something, or has something else in its place."""
  missing = [part for part in ("Config", "Task") if not isinstance(getattr(module, part, None), type)]
  if missing:
    raise TaskError(f"task '{name}' is a module without a class {' and '.join(missing)}")
  if "__dataclass_fields__" not in vars(module.Config):
    raise TaskError(f"task '{name}': Config is no dataclass: write @dataclass above it")
  if "config" not in inspect.signature(module.Task).parameters:
    raise TaskError(f"task '{name}': Task is not made of a config: write class Task(base.Task)")
  for part in ("TRAIN", "PPO"):
    if not isinstance(getattr(module, part, {}), dict):
      raise TaskError(f"task '{name}': {part} is no dictionary: write {part} = {{'key': value}}")


def _modules() -> dict[str, str]:
  """Return the dotted path of every task by name: gym/half_cheetah.py is called `gym/HalfCheetah-v5`."""
  own, gym = (
    [path.stem for path in sorted(folder.glob("*.py")) if path.stem != "base" and path.stem[0] != "_"]
    for folder in (_FOLDER, _FOLDER / "gym")
  )
  modules = {stem: f"{__name__}.{stem}" for stem in own}
  for stem in gym:
    name = "".join(word.capitalize() for word in stem.split("_"))
    modules[f"gym/{name}-v5"] = f"{__name__}.gym.{stem}"
  return modules


def _load_file(path: Path) -> ModuleType:
  if not path.is_file():
    hint = f"; the task of that name is task={path.stem}" if path.stem in _modules() else ""
    raise UnknownTask(f"there is no task file '{path}' in {Path.cwd()}{hint}")
  # The full path tells files of one name apart; dataclasses look their module up in sys.modules.
  module_name = "task_file_" + "_".join(path.resolve().with_suffix("").parts[1:])
  if module_name not in sys.modules:
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
      with task_errors(lambda: [str(path.resolve())]):
        spec.loader.exec_module(module)
    except BaseException:
      del sys.modules[module_name]
      raise
  return sys.modules[module_name]


def _load_dotted(name: str) -> ModuleType:
  try:
    spec = importlib.util.find_spec(name) if "." in name else None
  except ModuleNotFoundError as error:
    if error.name is None or not f"{name}.".startswith(f"{error.name}."):
      raise  # a package of that name is there and lacks something
    spec = None
  if spec is not None:
    with task_errors(lambda: [str(spec.origin)]):
      return importlib.import_module(name)
  if Path(f"{name}.py").is_file():
    raise UnknownTask(f"unknown task '{name}'; the file is task={name}.py")
  near = difflib.get_close_matches(name, available(), n=3, cutoff=0.4)
  hint = f"nearest: {', '.join(near)}" if near else f"available: {', '.join(available())}"
  raise UnknownTask(f"unknown task '{name}'; {hint}")
