"""The tasks: one module each, found by name; a task elsewhere loads by its dotted module path or its file."""

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent
_SHARED = {  # what tasks are built from
  "__init__",
  "__main__",
  "actuator",
  "arm",
  "base",
  "command",
  "common",
  "config",
  "event",
  "locomotion",
  "names",
  "observation",
  "osc",
  "quat",
  "randomize",
  "reward",
  "runner",
  "terrain",
  "trail",
  "walk",
}


class UnknownTask(ValueError):
  """A name that is no task. Its message is one line that names the nearest valid words."""


def available() -> list[str]:
  """Return the names of the tasks of this folder, sorted."""
  return sorted(_modules())


def load(name: str) -> ModuleType:
  """Return the module of a task: it has `Config`, `Task` and, where it overrides trainer settings, `PPO`.

  `name` is one of `available`, a dotted module path or the path of a `.py` file. Raises UnknownTask.
  """
  if name.endswith(".py"):
    module = _load_file(Path(name))
  elif name in (modules := _modules()):
    module = importlib.import_module(modules[name])
  else:
    module = _load_dotted(name)
  missing = [part for part in ("Config", "Task") if not hasattr(module, part)]
  if missing:
    raise UnknownTask(f"task '{name}' is a module without {' and '.join(missing)}")
  return module


def _modules() -> dict[str, str]:
  """Return the dotted path of every task by name: gym/half_cheetah.py is called `gym/HalfCheetah-v5`."""
  own, gym = (
    [path.stem for path in sorted(folder.glob("*.py")) if path.stem not in _SHARED]
    for folder in (_FOLDER, _FOLDER / "gym")
  )
  modules = {stem: f"{__name__}.{stem}" for stem in own}
  for stem in gym:
    name = "".join(word.capitalize() for word in stem.split("_"))
    modules[f"gym/{name}-v5"] = f"{__name__}.gym.{stem}"
  return modules


def _load_file(path: Path) -> ModuleType:
  if not path.is_file():
    raise UnknownTask(f"there is no task file '{path}'")
  # The full path tells files of one name apart; dataclasses look their module up in sys.modules.
  module_name = "task_file_" + "_".join(path.resolve().with_suffix("").parts[1:])
  if module_name not in sys.modules:
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
      spec.loader.exec_module(module)
    except BaseException:
      del sys.modules[module_name]
      raise
  return sys.modules[module_name]


def _load_dotted(name: str) -> ModuleType:
  try:
    if "." in name:
      return importlib.import_module(name)
  except ModuleNotFoundError as error:
    if error.name is None or not f"{name}.".startswith(f"{error.name}."):
      raise  # the task's own import failed: its author needs the traceback
  near = difflib.get_close_matches(name, available(), n=3, cutoff=0.4)
  hint = f"nearest: {', '.join(near)}" if near else f"available: {', '.join(available())}"
  raise UnknownTask(f"unknown task '{name}'; {hint}")
