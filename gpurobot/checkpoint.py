"""Checkpoints: one complete `.pt` file, written atomically, readable by `torch.load(weights_only=True)`."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDictBase

from gpurobot.config import Config, to_dict

if TYPE_CHECKING:
  from gpurobot.ppo import Learner

NAME = "checkpoint.pt"
FORMAT = 2


class CheckpointError(ValueError):
  """A checkpoint that is missing or cannot be read; the message is one line."""


def find(place: str | Path) -> Path:
  """Return the file that a run folder or a `.pt` path means; raise CheckpointError where there is none."""
  path = Path(place)
  if path.is_dir():
    path = path / NAME
  if not path.is_file():
    raise CheckpointError(f"no checkpoint at '{place}'{_suggestion(Path(place))}")
  return path


def _suggestion(place: Path) -> str:
  """Name the newest checkpoint in the nearest folder that exists."""
  folder = next(parent for parent in place.absolute().parents if parent.is_dir())
  found = sorted([*folder.glob(f"*/{NAME}"), *folder.glob("*.pt")], key=lambda path: path.stat().st_mtime)
  return f"; the nearest is '{found[-1]}'" if found else ""


def read(place: str | Path, device: str | torch.device = "cpu") -> dict[str, Any]:
  """Return the content of a run folder's checkpoint or a `.pt` file; raise CheckpointError if it cannot."""
  path = find(place)
  try:
    content = torch.load(path, map_location=device, weights_only=True)
  except Exception as error:  # torch raises whatever the pickle and zip readers raise
    raise CheckpointError(f"'{path}' is not a readable checkpoint ({type(error).__name__})") from error
  if not isinstance(content, dict) or content.get("format") != FORMAT:
    raise CheckpointError(f"'{path}' is not a checkpoint of format {FORMAT}")
  return content


def write(folder: str | Path, content: dict[str, Any]) -> Path:
  """Write the checkpoint of a run folder: a reader finds the old file or the new one, never a part.

  The data reach the disk (fsync) before the name does, so a power cut leaves the old file.
  """
  path = Path(folder) / NAME
  path.parent.mkdir(parents=True, exist_ok=True)
  temporary = path.with_suffix(f".{os.getpid()}.tmp")
  try:
    with temporary.open("wb") as file:
      torch.save({"format": FORMAT} | plain(content), file)
      file.flush()
      os.fsync(file.fileno())
    temporary.replace(path)
  finally:
    temporary.unlink(missing_ok=True)
  directory = os.open(path.parent, os.O_RDONLY)
  try:
    os.fsync(directory)
  finally:
    os.close(directory)
  return path


def plain(value: Any) -> Any:
  """Return nested dicts, lists, numbers, texts and tensors on the CPU: what a weights_only reader accepts."""
  if isinstance(value, TensorDictBase):
    value = value.to_dict()
  if isinstance(value, dict):
    return {key: plain(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [plain(item) for item in value]
  if isinstance(value, torch.Tensor):
    return value.detach().to("cpu", copy=True)  # without the memory that a view is part of
  return value


def words(folder: str | None) -> list[str]:
  """Return the words with which a run that torchrun restarts goes on in its folder, if it had one yet."""
  if folder is None:
    return []
  return [f"resume={folder}" if (Path(folder) / NAME).is_file() else f"run_dir={folder}"]


def restore(config: Config, learner: "Learner") -> float:
  """Put the learner where config.resume or config.checkpoint says; return the seconds of training before.

  Raises CheckpointError where the checkpoint is of another network, task or number of environments or ranks.
  """
  place = config.resume or config.checkpoint
  if place is None:
    return 0.0
  saved = read(place, learner.env.device)
  try:
    if config.resume:
      learner.load_state_dict(saved["learner"])
      return saved["seconds"]
    learner.load_policy(saved["learner"])
  except (KeyError, RuntimeError, ValueError) as error:  # torch tells of shapes in several lines
    raise CheckpointError(f"'{place}' does not fit this training: {' '.join(str(error).split())}") from error
  return 0.0


class Saver:
  """Writes the checkpoint of a run at the main rank; every rank takes part."""

  def __init__(self, config: Config, learner: "Learner", folder: Path) -> None:
    self.config, self.learner, self.folder = config, learner, folder
    self._last = time.monotonic()

  @property
  def due(self) -> bool:
    """Tell whether `checkpoint_seconds` have passed since the last one (by the clock of this rank)."""
    return time.monotonic() - self._last >= self.config.checkpoint_seconds

  def save(self, seconds: float) -> None:
    """Save now, `seconds` of training after the start."""
    state = self.learner.state_dict()
    if self.learner.world.main:
      write(self.folder, {"config": to_dict(self.config), "learner": state, "seconds": seconds})
    self._last = time.monotonic()
