"""Checkpoints: complete `.pt` files, written atomically, readable by `torch.load(weights_only=True)`."""

import errno
import functools
import logging
import math
import pickle
import shlex
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gpurobot.device.distributed import World
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.algorithm import Algorithm
from gpurobot.learn.identity import COLUMN, check_hidden, compare, names_of
from gpurobot.run import fixed_settings, replay_files
from gpurobot.run.files import rewrite
from gpurobot.run.output import tell
from gpurobot.run.replay_files import ReplayFiles
from gpurobot.settings.config import (
  OFF_POLICY,
  ConfigError,
  TrainConfig,
  algorithm_settings,
  assign,
  code_keys,
  defaults,
  to_dict,
  without_limits,
)
from gpurobot.settings.removed_keys import without_constants

LOG = logging.getLogger(__name__)

NAME, PREVIOUS, BEST = "checkpoint.pt", "checkpoint.previous.pt", "checkpoint.best.pt"
FORMAT = 2  # format 1 had other moments and random numbers


class CheckpointError(ValueError):
  """A checkpoint that is missing or cannot be read; the message is one line."""


class DamagedCheckpoint(CheckpointError):
  """A file that is truncated, corrupted, or no checkpoint at all."""


def find(source: str | Path) -> Path:
  """Return the newest checkpoint of a run folder or `.pt` path; raise CheckpointError if there is none."""
  return _files(source)[0]


def _files(source: str | Path) -> list[Path]:
  """Return the checkpoints of `source`, newest first: a run keeps the previous checkpoint too."""
  path = Path(source)
  if path.is_dir():
    path = path / NAME
  paths = [path, path.with_name(PREVIOUS)] if path.name == NAME else [path]
  found = [path for path in paths if path.is_file()]
  if not found:
    raise CheckpointError(f"no checkpoint at '{source}'{_suggestion(Path(source))}")
  return found


def _suggestion(source: Path) -> str:
  """Name the newest checkpoint in the nearest existing folder or its parent."""
  whole = source.absolute()
  for folder in [folder for folder in (whole, *whole.parents) if folder.is_dir()][:2]:
    found = [*folder.glob(f"*/{NAME}"), *folder.glob("*.pt")]
    if found:
      return f"; the nearest is '{max(found, key=lambda path: path.stat().st_mtime)}'"
  return ""


def exists(folder: str | Path) -> bool:
  """Return whether a run folder has a checkpoint."""
  return any((Path(folder) / name).is_file() for name in (NAME, PREVIOUS))


def kept(folder: str | Path) -> list[Path]:
  """Return the last checkpoint of a run folder and the one of its best policy, as far as they exist."""
  last = [find(folder)] if exists(folder) else []
  return [path for path in (*last, Path(folder) / BEST) if path.is_file()]


def read(source: str | Path, device: str | torch.device = "cpu") -> dict[str, Any]:
  """Return the content of a run folder's checkpoint or a `.pt` file; raise CheckpointError if it fails.

  If the last checkpoint of a run is damaged, a warning is printed and the previous one is read.
  """
  newest, *before = _files(source)
  try:
    return load(newest, device)
  except DamagedCheckpoint as error:
    if not before:
      raise
    content = load(before[0], device)
    _warn(f"{error}; the previous one, '{before[0]}', is used")
    return content


@functools.cache
def _warn(text: str) -> None:
  """Print a warning, once per process."""
  tell(f"warning: {text}")


def load(path: Path, device: str | torch.device = "cpu") -> dict[str, Any]:
  """Return the content of one file; raise CheckpointError if it is damaged or no checkpoint.

  Raises OSError if the disk fails, and torch.OutOfMemoryError; the file may be intact then.
  """
  content = _unpack(path, device)
  _check_format(path, content)
  _check_content(path, content)
  if isinstance(names := content.get("obs_names"), dict) and "learner" in content:  # of an older version
    content["learner"]["names"] = {COLUMN.format(group): columns for group, columns in names.items()}
  return content


def _unpack(path: Path, device: str | torch.device = "cpu") -> Any:
  """Return the content of a file of `save`; raise the errors of `load`."""
  try:
    with path.open("rb") as file:
      _check_archive(zipfile.ZipFile(file), path.stat().st_size)
      file.seek(0)
      return torch.load(file, map_location=device, weights_only=True)
  except torch.OutOfMemoryError:
    raise
  except pickle.UnpicklingError as error:
    raise CheckpointError(
      f"'{path}' is not a checkpoint of gpurobot: it holds more than numbers and strings"
    ) from error
  except Exception as error:  # torch passes on any exception of the pickle and zip readers
    # A damaged zip directory leads to offsets before the start of the file, hence EINVAL.
    if isinstance(error, OSError) and error.errno != errno.EINVAL:
      raise
    reason = " ".join(str(error).split()) or type(error).__name__
    raise DamagedCheckpoint(f"'{path}' is not a readable checkpoint ({reason})") from error


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
  """Raise BadZipFile if a file of `size` bytes unpacks to more than that, or has a wrong checksum.

  torch writes its parts as they are, so a packed file is none of ours, and may fill the memory.
  """
  unpacked = sum(part.file_size for part in archive.infolist())
  if unpacked > size:
    raise zipfile.BadZipFile(f"its {size:,} bytes unpack to {unpacked:,}: checkpoints are never packed")
  damaged = archive.testzip()  # torch.load compares no checksums
  if damaged:
    raise zipfile.BadZipFile(f"wrong checksum of {damaged}")


def _is_whole(path: Path) -> bool:
  """Return whether a file exists and has the right checksums."""
  try:
    with path.open("rb") as file:
      _check_archive(zipfile.ZipFile(file), path.stat().st_size)
  except (OSError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
    return False
  return True


def _check_format(path: Path, content: Any) -> None:
  """Raise CheckpointError, with the remedy, if a file has another format."""
  found = content.get("format") if isinstance(content, dict) else None
  if not isinstance(found, int):
    raise CheckpointError(f"'{path}' is not a checkpoint of gpurobot: it has no format number")
  if found < FORMAT:
    raise CheckpointError(
      f"'{path}' is a checkpoint of format {found}, of an older gpurobot; this one reads format {FORMAT}: "
      "use the gpurobot that wrote it, or train a new policy"
    )
  if found > FORMAT:
    raise CheckpointError(
      f"'{path}' is a checkpoint of format {found}, of a newer gpurobot; this one reads format {FORMAT}: "
      "update gpurobot"
    )


def _check_content(path: Path, content: dict[str, Any]) -> None:
  """Raise CheckpointError if a part of a checkpoint is missing or of another type."""
  config = content.get("config")
  if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
    raise CheckpointError(f"'{path}' is not a checkpoint of gpurobot: it has no settings")
  if not isinstance(config.get("task"), str):
    raise CheckpointError(f"'{path}' is not a checkpoint of gpurobot: it names no task")
  if not isinstance(content.get("learner", {}), dict):
    raise CheckpointError(f"'{path}' is not a checkpoint of gpurobot: its policy is {content['learner']!r}")
  for name in ("seconds", "logged"):
    number = content.get(name, 0)
    if not isinstance(number, int | float) or not 0 <= number < math.inf:
      raise CheckpointError(f"'{path}' is not a checkpoint of gpurobot: it has {name}={number!r}")


def configure(
  source: str | Path, values: dict[str, Any], module: ModuleType, given: Collection[str] = ()
) -> TrainConfig:
  """Return the settings of a checkpoint's "config", without its limits if one is among the `given` keys.

  Settings added since it was written get their defaults; those that became constants are left out. Raises
  CheckpointError for settings that never existed, or one that names a file with code and is not `given`.
  """
  try:
    default = defaults(module, given)
    config = assign(default, without_limits(without_constants(values), given))
  except ConfigError as error:
    raise CheckpointError(
      f"'{source}' was written with settings that this version does not accept: {error}"
    ) from error
  now, before = to_dict(config), to_dict(default)
  changed = [key for key in sorted(code_keys(config).difference(given)) if now[key] != before[key]]
  if changed:
    arguments = " ".join(shlex.quote(f"{key}={now[key]}") for key in changed)
    raise CheckpointError(
      f"'{source}' has the setting {' and '.join(changed)}, a file with code that runs: add {arguments}"
    )
  return config


def code_arguments(config: TrainConfig) -> list[str]:
  """Return the arguments that a program needs besides a checkpoint: the settings that can run code."""
  values = to_dict(config)
  own = {key: values[key] for key in ("task", *sorted(code_keys(config))) if key.startswith(("task", "env."))}
  own["network"] = algorithm_settings(config).network
  return [f"{key}={value}" for key, value in own.items() if value is not None]


def write(folder: str | Path, content: dict[str, Any]) -> Path:
  """Write the checkpoint of a run folder, as `save` does; the existing one becomes the previous one.

  An existing one that is damaged is replaced: the previous one may be all that is left of the run.
  """
  path = Path(folder) / NAME
  path.parent.mkdir(parents=True, exist_ok=True)
  save(path, content, path.with_name(PREVIOUS) if _is_whole(path) else None)
  return path


def save(path: Path, content: dict[str, Any], previous: Path | None = None) -> None:
  """Write content that `read` returns; an existing file becomes `previous`.

  Raises OSError if the disk is full; the existing files stay unchanged then.
  """
  with rewrite(path, previous) as file:
    try:
      torch.save({"format": FORMAT} | to_cpu(content), file)
    except RuntimeError as error:
      if isinstance(error.__context__, OSError):  # torch's writer replaces it by its own error
        raise error.__context__ from None
      raise


def restart_arguments(folder: str | None) -> list[str]:
  """Return the arguments that continue a run in its folder after a restart by torchrun."""
  if folder is None:
    return []
  return [f"run_dir={folder}", *(["resume=auto"] if exists(folder) else [])]


def restore(config: TrainConfig, learner: Algorithm) -> dict[str, float]:
  """Load config.resume or config.checkpoint into the learner; return the `Log.state` of a resumed run.

  Raises CheckpointError if the checkpoint has another network, task, or number of environments or ranks.
  """
  source = config.resume or config.checkpoint
  if source is None:
    return {}
  saved = read(source, learner.device)
  if "learner" not in saved:
    raise CheckpointError(
      f"'{source}' holds no policy; show it with: python -m gpurobot.replay file={source}"
    )
  if config.resume and "seconds" not in saved:
    raise CheckpointError(
      f"'{source}' holds a policy alone, with no training to resume; start a new run by checkpoint={source}"
    )
  _check_same(source, saved["learner"], learner.world)
  task, network = saved["config"]["task"], fixed_settings.of_a_network(config, saved["config"])
  differs = "" if task == config.task else f" of '{config.task}', as it is of the task '{task}'"
  with fitting(source, f"this training{differs}", network):
    names, now = saved["learner"].get("names", {}), names_of(learner.env)
    check_hidden(source, names, saved["learner"]["obs_dims"]["policy"], learner.env)
    compare(source, names, now, config.changed, exact=bool(config.resume))
    if config.resume:
      _resume(source, saved, config, learner)
    else:
      learner.load_policy(saved["learner"])
  if network:
    LOG.warning("the policy of '%s' may act otherwise here: %s", source, network)
  return {name: saved[name] for name in ("seconds", "logged") if name in saved} if config.resume else {}


def _resume(source: str, saved: dict[str, Any], config: TrainConfig, learner: Algorithm) -> None:
  """Load the state of a training, with its replay buffer if checkpoints keep it."""
  names, then = saved.get("replay") if learner.buffer else None, saved["config"]
  other = fixed_settings.of_a_run(config, then) or (names and fixed_settings.of_a_buffer(config, then))
  if other:
    raise CheckpointError(f"'{source}' does not fit this training: {other}")
  learner.load_state_dict(saved["learner"])
  _restore_buffer(config, learner, names)


def _restore_buffer(config: TrainConfig, learner: Algorithm, names: list[list[str]] | None) -> None:
  """Fill the replay buffer, if checkpoints keep it, from the files that a checkpoint names by rank."""
  if learner.buffer is None or names is None:
    if config.algorithm in OFF_POLICY:
      LOG.info("a new replay buffer is filled before learning goes on")
    return
  folder = find(str(config.resume)).parent
  try:
    replay_files.read(folder, names[learner.world.rank], learner.buffer, _unpack)
  except (OSError, ValueError) as error:
    raise CheckpointError(
      f"its replay buffer cannot be read ({error}); "
      f"add {config.algorithm}.save_buffer=false to fill a new one"
    ) from error


@contextmanager
def fitting(source: str | Path | None, whom: str, why: str = "") -> Iterator[None]:
  """Raise CheckpointError if the block cannot load the content of a checkpoint; `why` may be the cause."""
  try:
    yield
  except (torch.OutOfMemoryError, MemoryError, OSError, ConfigError, CheckpointError):
    raise
  except Exception as error:  # whatever has a wrong type or shape
    text = " ".join(str(error).split())  # torch's messages about shapes have several lines
    reason = f"it lacks {text}" if isinstance(error, KeyError) else text
    cause = f"; {why}" if why else ""
    raise CheckpointError(f"'{source}' does not fit {whom}: {reason}{cause}") from error


def _check_same(source: str, saved: dict[str, Any], world: World) -> None:
  """Raise CheckpointError on a rank that has read another checkpoint than the main rank (disks may fail)."""
  own, of_main = saved.get("iteration"), world.broadcast_object(saved.get("iteration"))
  if own != of_main:
    raise CheckpointError(
      f"'{source}': rank {world.rank} has read iteration {own}, rank 0 iteration {of_main}; start again"
    )


class Saver:
  """Writer of a run's checkpoints; every rank calls, the main rank writes."""

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path) -> None:
    self.config, self.learner, self.folder = config, learner, folder
    self.failed = False  # whether the last save failed, on this rank
    buffer, rank = learner.buffer, learner.world.rank
    self._buffer = ReplayFiles(folder, buffer, rank) if buffer else None
    self._last = time.monotonic()

  @property
  def due(self) -> bool:
    """Whether `checkpoint_seconds` have passed since the last save, by this rank's clock."""
    return time.monotonic() - self._last >= self.config.checkpoint_seconds

  def save(self, log: Mapping[str, float]) -> list[str]:
    """Save a checkpoint with a `Log.state`; return warnings.

    If the disk is full, the last checkpoint stays, and the next save is due as usual.
    """
    world, content = self.learner.world, {"learner": self.learner.state_dict(), **log}
    own: list[str] | OSError = []
    if self._buffer:
      own = self._write_buffer(self._buffer)
      content["replay"] = world.gather(own)
    warnings = self._write(content) if world.main else []
    if self._buffer and not world.broadcast_object(self.failed) and isinstance(own, list):
      self._buffer.forget(own)
    self._last = time.monotonic()
    return warnings

  def _write_buffer(self, buffer: ReplayFiles) -> list[str] | OSError:
    """Write the new rows of this rank's replay buffer; return its files, or what went wrong."""
    try:
      return buffer.write(save)
    except OSError as error:
      return error

  def _write(self, content: dict[str, Any]) -> list[str]:
    before, self.failed = self.failed, False
    try:
      for files in content.get("replay", []):
        if isinstance(files, OSError):
          raise files
      left_out = list(self.learner.env.left_out)  # of the robot file, by the engine
      write(self.folder, {"config": to_dict(self.config), "left_out": left_out} | content)
    except OSError as error:
      self.failed = True
      warning = f"the checkpoint could not be written ({error}); training goes on, and the last one is kept"
      return [] if before else [warning]
    return ["checkpoints can be written again"] if before else []
