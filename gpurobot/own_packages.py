"""Import of gpurobot's other packages, even where a user's folder has the name of one of them."""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from gpurobot.device.process import PLACE

NAMES = ("physics", "tasks", "train")


class _Finder:
  """Finder of gpurobot's packages, ahead of the search path."""

  @staticmethod
  def find_spec(
    name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
  ) -> ModuleSpec | None:
    """Return the spec of one of NAMES; None for any other module."""
    return PathFinder.find_spec(name, [PLACE]) if name in NAMES else None


def looked_for() -> bool:
  """Return whether Python looks for a program of gpurobot to run, as in `python -m gpurobot.play`."""
  named = {word.removeprefix("-m").partition(".")[0] for word in sys.orig_argv}
  return sys.argv[:1] == ["-m"] and "gpurobot" in named


def is_program() -> bool:
  """Return whether this process is a program of gpurobot, started by any of its names."""
  script = Path(sys.argv[0])
  return looked_for() or script.name == "gpurobot" or script.absolute() == Path(PLACE, "train.py")


def leave_working_directory() -> None:
  """Stop the search for modules in the working directory, by `python -m` or an empty entry of PYTHONPATH."""
  given = os.environ.get("PYTHONPATH", "")
  named = [entry for entry in given.split(os.pathsep) if entry]
  if looked_for() and not sys.flags.safe_path and sys.path[0] != PLACE:
    del sys.path[0]
  if given and len(named) <= given.count(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(named)
    sys.path.remove(str(Path.cwd()))
  os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that libraries start


def prefer() -> None:
  """Import gpurobot's packages from now on, not the working directory's.

  Programs of gpurobot and its Python interface call it. A user's program may have a `tasks` of its own, and
  keeps it, but cannot have gpurobot's too: the ImportError names it.
  """
  check()
  if _Finder not in sys.meta_path:
    sys.meta_path.insert(0, _Finder)


def check() -> None:
  """Raise ImportError if the program has imported a module of its own with the name of one of gpurobot's."""
  for name in NAMES:
    module = sys.modules.get(name)
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", [])]  # of a folder: no file
    for place in map(Path, filter(None, places)):
      if Path(PLACE, name) not in (place, place.parent, place.with_suffix("")):
        raise ImportError(f"gpurobot needs its own package '{name}', which {place} hides: rename that")
