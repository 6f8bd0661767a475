"""MLflow log of a run: parameters, metrics, videos, the last checkpoint and the best policy."""

import itertools
import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow import MlflowClient, get_tracking_uri
from mlflow.entities import Metric, Param, Run
from mlflow.exceptions import MlflowException
from torch import Tensor

from gpurobot.run import metrics
from gpurobot.run.logger import SEEN, Logger, NoAnswer, RemoteRuns
from gpurobot.settings.config import ConfigError

LOG = logging.getLogger(__name__)

BATCH = 100  # parameters that a server takes at once
# MLflow tries seven times, for minutes: too long for a training that waits to start or to end.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")  # [s]


class MlflowLog(Logger):
  """Writer of a run at the MLflow server that `MLFLOW_TRACKING_URI` names."""

  name, remote = "log.mlflow", True

  def __init__(self, experiment: str, folder: Path, resumed: bool) -> None:
    """Start a run of an experiment, or go on with the one of the run folder if that is resumed.

    Raises ConfigError if that fails, as without a server.
    """
    runs = RemoteRuns(folder / "mlflow.json")
    try:
      self._client = MlflowClient()
      run = self._start(experiment, folder.name, runs.find(experiment) if resumed else None)
    except (MlflowException, ImportError) as error:  # without a server MLflow imports a database
      reason = " ".join(str(error).split())
      if "timed out" in reason:
        raise NoAnswer(f"'{get_tracking_uri()}' timed out") from error
      raise ConfigError(
        f"log.mlflow={experiment} starts no run at '{get_tracking_uri()}' ({reason}); "
        "set MLFLOW_TRACKING_URI to the address of a server"
      ) from error
    self._id = run.info.run_id
    runs.keep(experiment, self._id)
    LOG.info("MLflow run %s of experiment %s at %s", self._id, experiment, get_tracking_uri())

  def _start(self, experiment: str, name: str, known: str | None) -> Run:
    if known:
      self._client.update_run(known, "RUNNING")
      return self._client.get_run(known)
    found = self._client.get_experiment_by_name(experiment)
    place = found.experiment_id if found else self._client.create_experiment(experiment)
    return self._client.create_run(place, run_name=name)

  def write_config(self, values: Mapping[str, Any]) -> None:
    """Write the settings as a file, and as parameters those that are new: MLflow changes no parameter."""
    self._client.log_dict(self._id, dict(values), "config.json")
    known = self._client.get_run(self._id).data.params
    new = (Param(key, str(value)) for key, value in values.items() if key not in known)
    while batch := list(itertools.islice(new, BATCH)):
      self._client.log_batch(self._id, params=batch)

  def write(self, row: Mapping[str, float]) -> None:
    """Write the finite numbers of a row by their tags."""
    now = int(time.time() * 1000)  # [ms]
    numbers = [Metric(tag, value, now, int(row["steps"])) for tag, value in metrics.tagged(row).items()]
    self._client.log_batch(self._id, metrics=numbers)

  def write_video(self, path: Path, steps: int) -> None:  # noqa: ARG002 (files have no steps)
    """Upload a video."""
    self._client.log_artifact(self._id, str(path), "videos")

  def write_images(self, pictures: Mapping[str, Tensor], steps: int) -> None:
    """Upload the policy's images with steps."""
    for name, colours in pictures.items():
      self._client.log_image(self._id, colours.numpy(), key=f"{SEEN}/{name}", step=steps)

  def write_checkpoints(self, paths: Sequence[Path]) -> None:
    """Upload the checkpoints."""
    for path in paths:
      self._client.log_artifact(self._id, str(path))

  def close(self, failed: bool) -> None:
    """Mark the run as finished or failed."""
    self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")
