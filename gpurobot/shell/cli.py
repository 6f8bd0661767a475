"""Command line: `key=value` arguments to a configuration and a task, one-line errors."""

import contextlib
import errno
import hashlib
import logging
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TextIO, TypeVar, cast

import torch

from gpurobot import extras
from gpurobot.device import process
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint, folder
from gpurobot.run.output import Plain, printable, tell, until_unread
from gpurobot.settings import checks, config_files
from gpurobot.settings.config import (
  ConfigError,
  Load,
  TrainConfig,
  assign,
  code_keys,
  defaults,
  leaves,
  pairs,
  to_dict,
)
from gpurobot.shell import help_text
from gpurobot.shell.programs import ALL_HELP, HELP

NO_MEMORY = "DefaultCPUAllocator"  # torch has no exception for a lack of CPU memory; its message names this
FILES = "config="
AUTO = "auto"  # of resume


S = TypeVar("S")


@contextlib.contextmanager
def user_errors(argv: list[str], world: World) -> Iterator[None]:
  """End the program on a user's mistake: print one line on standard error and exit with status 2.

  A mistake is a ValueError, ImportError or OSError raised in the block, or a lack of memory. With
  `debug=true` among the arguments the traceback is shown instead. Ctrl-C exits with status 130, silently, and
  a closed pipe at standard output with 141. The main rank also prints the log messages of the packages, such
  as the build of a kernel. Warnings to the user are one line each. The program has imported its libraries by
  then, so the garbage collector resumes here.
  """
  process.resume_collection()
  process.raise_at_interrupt()
  debug = "debug=true" in [word.lower() for word in argv]
  try:
    with contextlib.ExitStack() as stack:
      if world.main:
        stack.enter_context(_shown_logs())
      if not debug:
        stack.enter_context(_plain_warnings())
      stack.enter_context(until_unread())
      yield
  except BaseException as error:
    if isinstance(error, KeyboardInterrupt) and not debug:
      raise SystemExit(128 + signal.SIGINT) from None
    if not debug and (message := _mistake(error)):
      fail(message, world)
    raise


class _Teller(logging.Handler):
  """Handler that prints the messages of a logger on standard error."""

  def emit(self, record: logging.LogRecord) -> None:
    """Print a message."""
    tell(record.getMessage())


@contextlib.contextmanager
def _shown_logs() -> Iterator[None]:
  """Print the log messages of the packages while the block runs."""
  teller, loggers = _Teller(), [logging.getLogger(package) for package in ("gpurobot", "physics")]
  for logger in loggers:
    logger.addHandler(teller)
    logger.setLevel(logging.INFO)
  try:
    yield
  finally:
    for logger in loggers:
      logger.removeHandler(teller)


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
  """Print a UserWarning without its file and line while the block runs; filters and recorders stay as set."""
  before = warnings.formatwarning

  def plain(message: Warning | str, category: type[Warning], *where: Any, **line: Any) -> str:
    if category is not UserWarning:
      return before(message, category, *where, **line)
    return f"warning: {printable(' '.join(str(message).split()))}\n"

  warnings.formatwarning = plain
  try:
    yield
  finally:
    warnings.formatwarning = before


def _mistake(error: BaseException) -> str:
  """Return the one-line message of a user's mistake, or "" if the error is a fault of the program."""
  message = " ".join(str(error).split())
  no_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or NO_MEMORY in message
  if no_memory or isinstance(error.__cause__, torch.OutOfMemoryError):  # the cause: from a task's own file
    return f"out of memory: lower num_envs or ppo.horizon ({message})"
  if isinstance(error, OSError) and error.errno == errno.ENOSPC:
    return f"the disk is full: free some of it, or write elsewhere ({message})"
  return message if isinstance(error, ValueError | ImportError | OSError) else ""


def parse(argv: list[str], load: Load, world: World) -> tuple[TrainConfig, ModuleType]:
  """Return the configuration and the task's module; raise ConfigError or CheckpointError on bad input.

  `load` imports a task, or raises ValueError with a one-line message. With resume=... the arguments override
  the saved configuration.
  """
  words = [word for word in argv if not word.startswith(FILES)]
  paths = [path for word in argv if word not in words for path in word.removeprefix(FILES).split(",")]
  given = {key: value for key, _, value in (word.partition("=") for word in words if word not in HELP)}
  return _read(given, config_files.read_all(paths), load, world, words)


def configure(given: Mapping[str, Any], load: Load, world: World) -> tuple[TrainConfig, ModuleType]:
  """Return the configuration with the given settings, by dotted key, and the task's module, as `parse`.

  `config` is a file, or a list of files.
  """
  names = given.get("config", [])
  files = config_files.read_all([names] if isinstance(names, str) else names)
  return _read({key: value for key, value in given.items() if key != "config"}, files, load, world)


def _read(
  given: Mapping[str, Any], files: Mapping[str, Any], load: Load, world: World, words: Sequence[str] = ()
) -> tuple[TrainConfig, ModuleType]:
  """Return the configuration and the task's module: the defaults, then files, then given settings override.

  The defaults are the task's, or those of the run to resume. `words` are the command line, if there is one.
  """
  here, both = Path.cwd(), {**files, **given}
  task, resumed = _text(both, "task"), _resumed(both)
  if resumed:
    saved = checkpoint.read(resumed)["config"]
    saved |= {"run_dir": str(checkpoint.find(resumed).parent), "changed": False}
    module = load(saved["task"], resumed, task)
    before = checkpoint.configure(resumed, saved, module, both)
  else:
    module = load(task or TrainConfig().task)
    before = defaults(module, both, both.get("algorithm"))
  _check_words(words, before, both)
  config = assign(config_files.applied(before, files), given)
  config.resume = resumed
  _check(before, config, files, given, world)
  if here != Path.cwd():  # the task's code has left the folder that paths are relative to
    config.run_dir = world.broadcast_object(str(here / (config.run_dir or folder.new(config))))
    for key in ("resume", "checkpoint", "teacher"):
      parts = (getattr(config, key) or "").split(",")
      setattr(config, key, ",".join(str(here / part) for part in parts if part) or None)
  return config, module


def _text(given: Mapping[str, Any], key: str) -> str | None:
  """Return a name or path of the settings as text, if there is one; raise ConfigError if it is neither."""
  value = given.get(key)
  if not isinstance(value, str | Path | None):
    raise ConfigError(f"{key}={value} is not a text")
  return None if value in (None, "") else str(value)


def _resumed(given: Mapping[str, Any]) -> str | None:
  """Return the run to resume, if any; resume=auto is the run in run_dir if it has a checkpoint."""
  texts = (_text(given, key) for key in ("resume", "run_dir"))
  resumed, run_dir = (None if text == "null" else text for text in texts)
  if resumed != AUTO:
    return resumed
  if run_dir is None:
    raise ConfigError("resume=auto starts or continues the run of a folder; add run_dir=<folder>")
  return run_dir if checkpoint.exists(run_dir) else None


def _check_words(words: Sequence[str], before: TrainConfig, given: Mapping[str, Any]) -> None:
  """Print the help and exit if the words ask for it; raise ConfigError if one is no `key=value`."""
  if {*HELP} & {*words}:
    chosen = assign(before, {key: given[key] for key in ("task", "algorithm") if key in given})
    print(printable(help_text.of_training(chosen, ALL_HELP in words)))
    raise SystemExit(0)
  given_words([*words], leaves(before))


def given_words(words: list[str], keys: Iterable[str]) -> dict[str, str]:
  """Return the values of `key=value` arguments; raise ConfigError that says how to name a task or robot."""
  try:
    return pairs(words, keys)
  except ConfigError as error:
    word = words[0]
    if "=" in word or word.startswith("-") or word in keys:
      raise
    named = f"task=walk env.robot={word}" if word.endswith((".xml", ".urdf")) else f"task={word}"
    raise ConfigError(f"{error}; did you mean {named}?") from error


def _check(
  before: TrainConfig, config: TrainConfig, files: Mapping[str, Any], given: Mapping[str, Any], world: World
) -> None:
  """Raise an error if settings do not go together or what they name is missing; warn of those without effect.

  A file may serve several algorithms, so its settings without effect cause a warning, not an error.
  """
  old, new = to_dict(before), to_dict(config)
  changed = [key for key in new if new[key] != old[key]]
  of_files = [key for key in files if key in changed and key not in given]
  named = "checkpoint" in (*given, *of_files) and {**files, **given}.get("resume") != AUTO
  if named and config.resume and config.checkpoint:
    raise ConfigError(
      f"checkpoint={config.checkpoint} has no effect with resume={config.resume}; leave one out"
    )
  checks.check(config, given, world.size)
  idle = checks.without_effect(config, given, of_files, changed)
  if world.device(config.device).type == "cpu" and config.tf32 and "tf32" in given:
    idle["tf32"] = "on a CPU"
  for key, reason in idle.items() if world.main else ():
    warnings.warn(f"{key} has no effect {reason}", stacklevel=2)
  if config.sim_device:
    world.device(config.sim_device, "sim_device")
  if config.checkpoint and not config.resume:  # a resumed run no longer needs the checkpoint it began from
    checkpoint.find(config.checkpoint)
  for extra in ("wandb", "mlflow"):
    if getattr(config.log, extra):
      extras.check(extra)


def identity(config: TrainConfig, module: ModuleType) -> dict[str, Any]:
  """Return by key what all ranks of a training must share: settings, and digests of the files with code.

  `threads` may differ, as the machines of the ranks may.
  """
  values = to_dict(config)
  files = {"task": str(module.__file__)}
  # A setting is <file>:<name>, or a file.
  files |= {key: re.sub(":[^:]*$", "", str(values[key])) for key in sorted(code_keys(config))}
  digests = {
    f"the file of {key}": hashlib.sha256(Path(file).read_bytes()).hexdigest()
    for key, file in files.items()
    if Path(file).is_file()
  }
  return {key: value for key, value in values.items() if key != "threads"} | digests


def start(
  settings: S,
  program: str,
  argv: list[str],
  run: Callable[[S], None],
  read: Callable[[S, list[str]], S] | None = None,
  named: str = "",
) -> None:
  """Run a program with settings from `key=value` arguments, or print its help.

  `read` returns the settings with the arguments applied, as `assign` does. A word may be the value of the key
  `named` without the key. A mistake ends the program with one line on standard error and status 2.
  """
  with user_errors(argv, World()), contextlib.redirect_stdout(cast("TextIO", Plain(sys.stdout))):
    words = [word for word in argv if word not in HELP]
    given = with_named(words, named) if named else words
    settings = read(settings, given) if read else assign(settings, pairs(given, leaves(settings)))
    if len(words) < len(argv):
      print(help_text.of_settings(settings, program))
    else:
      run(settings)


def with_folder(words: list[str], key: str) -> list[str]:
  """Return the words with a bare path first, as `key=<path>`; a folder of runs stands for its newest run.

  `gpurobot play runs/ant` is short for `gpurobot play checkpoint=runs/ant/<its newest run>`.
  """
  named = with_named(words, key)
  if named is words:
    return words
  place = named[0].removeprefix(f"{key}=")
  own = f"{key}=best" in words and (Path(place) / checkpoint.BEST).is_file()  # as a population has
  source = place if own else folder.newest_run(place)
  if source != place:
    tell(f"the newest run in '{place}' is '{source}'")
  return [f"{key}={source}", *named[1:]]


def with_named(words: list[str], key: str) -> list[str]:
  """Return the words with a bare one first, as `key=<word>`, or `words` itself if there is none.

  A path that looks like a setting has to be the first.
  """
  places = [index for index, word in enumerate(words) if "=" not in word and not word.startswith("-")]
  index = 0 if words and Path(words[0]).exists() else next(iter(places), None)
  if index is None or any(word.startswith(f"{key}=") for word in words[:index]):
    return words
  return [f"{key}={words[index]}", *words[:index], *words[index + 1 :]]


def fail(message: str, world: World) -> NoReturn:
  """Print one line on standard error, once for all ranks with the same message; exit with status 2."""
  message = printable(message)
  if world.first(message):
    print(f"error: {message}", file=sys.stderr)
  raise SystemExit(2)
