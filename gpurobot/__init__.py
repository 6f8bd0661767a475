"""Trainer of robot policies: data-parallel PPO, SAC and TD3 over TensorDict.

`gpurobot.train("ant")` trains, `gpurobot.load(folder)` opens a run, and `gpurobot.make("ant", num_envs=8)`
makes environments; see gpurobot/api.py.

Importing the package also registers the tasks with Gymnasium: `gymnasium.make("gpurobot/Ant-v0")`. It imports
none of the libraries, so a program without them starts at once.
"""

import importlib
from typing import Any

from gpurobot import own_packages
from gpurobot.adapters import registration
from gpurobot.device import process

if own_packages.is_program():
  process.end_at_interrupt()
  own_packages.leave_working_directory()
  own_packages.prefer()
  process.pause_collection()  # until the program's imports are done, see cli.user_errors
process.limit_spinning()
registration.register_on_import()

_API = ("Run", "load", "make", "train")


def __getattr__(name: str) -> Any:
  """Return a part of the Python interface, imported on first use."""
  if name not in _API:
    raise AttributeError(f"module 'gpurobot' has no attribute '{name}'")
  own_packages.prefer()
  with process.collection_paused():
    api = importlib.import_module("gpurobot.api")
  return getattr(api, name)


def __dir__() -> list[str]:
  """Return the names of the package, including the interface."""
  return sorted({*globals(), *_API})
