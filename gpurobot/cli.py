"""The command line: `key=value` words -> (configuration, task); help; errors in one line, status 2."""

import signal
import sys
import time
from types import FrameType, ModuleType
from typing import Any, NoReturn

from gpurobot import checkpoint
from gpurobot.config import (
  Config,
  ConfigError,
  Load,
  assign,
  defaults,
  leaves,
  pairs,
  share,
  to_dict,
  without_limits,
)
from gpurobot.distributed import World

HELP = ("--help", "-h")
USAGE = """usage: {program} [key=value ...]

Settings, their defaults and meaning:
"""


def parse(argv: list[str], load: Load, world: World) -> tuple[Config, ModuleType]:
  """Return the configuration and the task's module; on bad input print one line and exit with status 2.

  `load(name)` imports a task and raises ValueError, in one line, where there is none. With resume=... the
  saved configuration comes first, then the words given now.
  """
  try:
    return _parse(argv, load, world)
  except (ConfigError, checkpoint.CheckpointError) as error:
    fail(str(error), world)


def _parse(argv: list[str], load: Load, world: World) -> tuple[Config, ModuleType]:
  words = [word for word in argv if word not in HELP]
  early = {key: value for key, _, value in (word.partition("=") for word in words)}
  saved: dict[str, Any] = {}
  if early.get("resume"):
    saved = checkpoint.read(early["resume"])["config"] | {
      "run_dir": str(checkpoint.find(early["resume"]).parent)
    }
  module = _load_task(load, early.get("task") or saved.get("task", Config().task))
  config = assign(defaults(module, early), without_limits(saved, early))
  if len(words) < len(argv):
    print(describe(config, "python train.py"))
    raise SystemExit(0)
  config = assign(config, pairs(words, leaves(config)))
  share(config, world.size)
  world.device(config.device)
  if config.checkpoint:
    checkpoint.find(config.checkpoint)
  return config, module


def _load_task(load: Load, name: str) -> ModuleType:
  try:
    return load(name)
  except (ValueError, ImportError) as error:
    raise ConfigError(str(error)) from error


def describe(config: Any, program: str) -> str:
  """Return the help text: every field as `key=default  meaning`, grouped by dataclass."""
  groups: dict[str, list[tuple[str, str]]] = {}
  plain = to_dict(config)
  for key, leaf in leaves(config).items():
    unit = f" [{leaf.metadata['unit']}]" if leaf.metadata.get("unit") else ""
    line = (f"{key}={_word(plain[key])}", leaf.metadata.get("help", "") + unit)
    groups.setdefault(key.rpartition(".")[0], []).append(line)
  width = max(len(left) for lines in groups.values() for left, _ in lines)
  text = USAGE.format(program=program)
  for lines in groups.values():
    text += "\n" + "".join(f"  {left:<{width}}  {meaning}\n" for left, meaning in lines)
  return text


def _word(value: Any) -> str:
  """Return a plain value as it is written on the command line."""
  if value is None or isinstance(value, bool):
    return {None: "null", True: "true", False: "false"}[value]
  return str(value).replace(" ", "") if isinstance(value, list) else str(value)


def fail(message: str, world: World) -> NoReturn:
  """Print one line on standard error, once for all ranks that fail with it, and exit with status 2."""
  if world.first(message):
    print(f"error: {message}", file=sys.stderr)
  raise SystemExit(2)


class Interrupt:
  """Remembers that Ctrl-C or SIGTERM asked for an end; a Ctrl-C a second later or more ends at once.

  Sooner it is the same one: torchrun passes on what the terminal has sent to all.
  """

  def __init__(self) -> None:
    self.requested = False
    self._since = 0.0  # the first request [s]
    for number in (signal.SIGINT, signal.SIGTERM):
      signal.signal(number, self._request)

  def _request(self, number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if not self.requested:
      self.requested, self._since = True, now
    elif number == signal.SIGINT and now - self._since >= 1:
      raise KeyboardInterrupt
