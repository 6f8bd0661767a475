"""Help text of a program without its libraries: the settings are read from the text of its module."""

from collections.abc import Sequence

import tasks
from gpurobot.settings.config import ConfigError, TrainConfig, assign, defaults
from gpurobot.shell import declared, help_text
from gpurobot.shell.programs import ALL_HELP, HELP, PROGRAMS


def text(name: str, words: Sequence[str]) -> str | None:
  """Return the help text of a program, without importing it.

  None: the text depends on more, such as a checkpoint or a task's file, or the words have a mistake.
  """
  others = [word for word in words if word not in HELP]
  program = PROGRAMS[name]
  if name == "train":
    return _of_task(others, ALL_HELP in words)
  if not program.settings or others:
    return None
  module = declared.read(program.module)
  return help_text.of_settings(getattr(module, program.settings)(), name) + getattr(module, "MORE", "")


def _of_task(words: Sequence[str], everything: bool) -> str | None:
  """Return the help text of a training; None if the words say more than a task and an algorithm."""
  given = dict(word.partition("=")[::2] for word in words)
  module = tasks.module_name(given.get("task", TrainConfig().task))
  if {*given} - {"task", "algorithm"} or module is None or module.startswith("tasks.dm"):
    return None
  chosen: dict[str, str] = {key: given[key] for key in ("task", "algorithm") if key in given}
  config = defaults(declared.read(module), given, given.get("algorithm"))
  try:
    return help_text.of_training(assign(config, chosen), everything)
  except ConfigError:
    return None
