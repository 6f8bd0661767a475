"""Registration of the tasks with Gymnasium.

`ant` is gpurobot/Ant-v0, `quadruped_rough` gpurobot/QuadrupedRough-v0, `gym/Ant-v5` gpurobot/GymAnt-v5, and
`dm/walker_run` gpurobot/DmWalkerRun-v0.
gpurobot/Task-v0 makes any other task: make("gpurobot/Task-v0", task="pendulum.py").
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from gpurobot import own_packages

NAMESPACE = "gpurobot"
MODULE = f"{NAMESPACE}.adapters.gym"


class _Finder:
  """Import hook that finds Gymnasium by the other finders, and registers the tasks once it is imported."""

  @classmethod
  def find_spec(
    cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
  ) -> ModuleSpec | None:
    """Return Gymnasium's spec with a loader that also registers the tasks; None for any other module."""
    if name != "gymnasium":
      return None
    others = (finder for finder in sys.meta_path if finder is not cls)
    found = (finder.find_spec(name, path, target) for finder in others)
    spec = next(filter(None, found), None)
    if spec and spec.loader:
      execute = spec.loader.exec_module

      def execute_and_register(module: ModuleType) -> None:
        execute(module)
        register()

      spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
    return spec


def register_on_import() -> None:
  """Register the tasks as soon as the program imports Gymnasium: now, if it has."""
  if "gymnasium" in sys.modules:
    register()
  else:
    sys.meta_path.insert(0, _Finder)


def register() -> None:
  """Register every task of tasks/, and Task-v0 for task files elsewhere.

  Raises ImportError if the program has a `tasks` of its own, which hides gpurobot's.
  """
  import tasks  # noqa: PLC0415 (a program that makes no environment needs neither)

  own_packages.check()
  _enter("Task-v0")
  for task in tasks.available():
    _enter(name(task), task=task)


def name(task: str) -> str:
  """Return the Gymnasium name of a task, without the namespace."""
  words = task.replace("/", "_").split("_")
  joined = "".join(word[:1].upper() + word[1:] for word in words)
  return joined if "-v" in joined else f"{joined}-v0"


def _enter(name: str, **kwargs: str) -> None:
  import gymnasium  # noqa: PLC0415

  gymnasium.register(
    f"{NAMESPACE}/{name}",
    entry_point=f"{MODULE}:TaskEnv",
    vector_entry_point=f"{MODULE}:TaskVectorEnv",
    kwargs=kwargs,
  )
