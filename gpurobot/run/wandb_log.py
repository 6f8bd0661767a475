"""Weights & Biases log of a run: configuration, metrics, videos, the last checkpoint, the best policy."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import wandb
from torch import Tensor

from gpurobot.run import metrics
from gpurobot.run.logger import PATIENCE_FAILED, SEEN, Logger, NoAnswer, RemoteRuns
from gpurobot.settings.config import ConfigError

AXIS = "progress/steps"  # of all charts


class WandbLog(Logger):
  """Writer of a run at Weights & Biases; `WANDB_MODE=offline` keeps it in the run folder."""

  name, remote = "log.wandb", True

  def __init__(self, project: str, folder: Path, resumed: bool) -> None:
    """Start a run of a project, or go on with the one of the run folder if that is resumed.

    Raises ConfigError if that fails, as without a login.
    """
    runs = RemoteRuns(folder / "wandb.json")
    known = runs.find(project) if resumed else None
    name = known or uuid.uuid4().hex[:8]
    try:
      self._run = wandb.init(
        project=project,
        id=name,
        resume="allow" if known else None,
        name=folder.name,
        dir=str(folder),
        # W&B would record the terminal, where the live table moves, and end with a summary of its own.
        settings=wandb.Settings(console="off", quiet=True, init_timeout=PATIENCE_FAILED),
      )
    except wandb.Error as error:
      reason = " ".join(str(error).split())
      if reason.startswith("Timed out"):  # a missing login is a CommError too
        raise NoAnswer(str(error).partition("\n")[0]) from error
      raise ConfigError(
        f"log.wandb={project} starts no run ({reason}); run `wandb login`, or set WANDB_MODE=offline"
      ) from error
    # Steps as an axis of our own, as W&B drops what comes before its last step: a resumed run repeats some.
    self._run.define_metric("*", step_metric=AXIS)
    runs.keep(project, name)

  def write_config(self, values: Mapping[str, Any]) -> None:
    """Write the settings, in groups; a resumed run may have changed them."""
    self._run.config.update(grouped(values), allow_val_change=True)

  def write(self, row: Mapping[str, float]) -> None:
    """Write the finite numbers of a row by their tags."""
    self._run.log(metrics.tagged(row))

  def write_video(self, path: Path, steps: int) -> None:
    """Upload a video."""
    self._run.log({"policy": wandb.Video(str(path), format="gif"), AXIS: steps})

  def write_images(self, pictures: Mapping[str, Tensor], steps: int) -> None:
    """Upload the policy's images."""
    images = {f"{SEEN}/{name}": wandb.Image(colours.numpy()) for name, colours in pictures.items()}
    self._run.log(images | {AXIS: steps})

  def write_checkpoints(self, paths: Sequence[Path]) -> None:
    """Upload the checkpoints as an artifact of type model."""
    artifact = wandb.Artifact(f"checkpoint-{self._run.id}", "model")
    for path in paths:
      artifact.add_file(str(path))
    self._run.log_artifact(artifact)

  def close(self, failed: bool) -> None:
    """Upload the rest, and mark a failed run as such."""
    self._run.finish(exit_code=int(failed))


def grouped(values: Mapping[str, Any]) -> dict[str, Any]:
  """Return settings by key as nested groups: W&B's filters take a dot for a group."""
  groups: dict[str, Any] = {}
  for key, value in values.items():
    *parents, last = key.split(".")
    place = groups
    for parent in parents:
      place = place.setdefault(parent, {})
    place[last] = value
  return groups
