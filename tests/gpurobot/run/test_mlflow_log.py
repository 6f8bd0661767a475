"""MLflow: what its own server, which runs here, has of a training."""

import csv
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import train
from gpurobot.run import checkpoint
from gpurobot.run.logger import NoAnswer
from gpurobot.run.metrics import tagged
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy

mlflow = pytest.importorskip("mlflow", reason="comes with the extra 'mlflow'")
from gpurobot.run.mlflow_log import MlflowLog  # noqa: E402

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


# MLflow's application on a database of its own, as `mlflow server` runs it, in a process of its own.
SERVER = """
import os, sys
place = sys.argv[1]
os.environ |= {
  "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{place}/runs.db",
  "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
  "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
  "_MLFLOW_SERVER_ARTIFACT_DESTINATION": f"{place}/artifacts",
}
from mlflow.server import app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
  """The address of an MLflow server."""
  command = [sys.executable, "-c", SERVER, str(tmp_path_factory.mktemp("mlflow"))]
  with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
    yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    process.terminate()


@pytest.fixture
def client(server, monkeypatch):
  monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
  return mlflow.MlflowClient(server)


def runs(client, experiment: str) -> list:
  place = client.get_experiment_by_name(experiment).experiment_id
  return client.search_runs([place])


def train_toy(folder: Path, experiment: str, *words: str) -> int:
  task = f"task={toy.__file__}"
  return train.main([task, f"log.mlflow={experiment}", f"run_dir={folder}", "log_every=1", *words])


def test_a_run_has_settings_metrics_and_checkpoints(client, tmp_path):
  assert train_toy(tmp_path, "whole", "max_iterations=8", "seed=7") == 0
  (run,) = runs(client, "whole")
  assert (run.info.status, run.info.run_name) == ("FINISHED", tmp_path.name)
  assert (run.data.params["seed"], run.data.params["ppo.horizon"]) == ("7", "8")
  with (tmp_path / "metrics.csv").open() as file:
    last = [{column: float(value) for column, value in row.items()} for row in csv.DictReader(file)][-1]
  assert run.data.metrics == pytest.approx(tagged(last))
  history = client.get_metric_history(run.info.run_id, "episode/return")
  assert [point.step for point in history][-1] == last["steps"]
  names = {file.path for file in client.list_artifacts(run.info.run_id)}
  assert names == {"config.json", checkpoint.NAME, checkpoint.BEST}
  (tmp_path / "copy").mkdir()
  copy = client.download_artifacts(run.info.run_id, "checkpoint.pt", str(tmp_path / "copy"))
  assert Path(copy).read_bytes() == checkpoint.find(tmp_path).read_bytes()


def test_a_resumed_run_goes_on(client, tmp_path):
  train_toy(tmp_path, "resumed", "max_iterations=2")
  train.main([f"task={toy.__file__}", f"resume={tmp_path}", "max_iterations=4"])
  (run,) = runs(client, "resumed")
  assert run.info.status == "FINISHED"
  steps = [point.step for point in client.get_metric_history(run.info.run_id, "progress/iteration")]
  assert steps == [512, 1024, 1536, 2048]
  assert run.data.params["max_iterations"] == "2"  # MLflow changes no parameter; config.json has the last
  assert (
    '"max_iterations": 4'
    in Path(client.download_artifacts(run.info.run_id, "config.json", str(tmp_path))).read_text()
  )


def test_a_training_that_fails_is_marked(client, tmp_path):
  log = MlflowLog("failed", tmp_path, 0)
  assert runs(client, "failed")[0].info.status == "RUNNING"
  log.close(failed=True)
  assert runs(client, "failed")[0].info.status == "FAILED"


def test_a_video_and_what_the_policy_sees_are_kept(client, tmp_path):
  (tmp_path / "000100.gif").write_bytes(b"GIF89a")
  log = MlflowLog("videos", tmp_path, 0)
  log.write_video(tmp_path / "000100.gif", 640)
  log.write_images({"front": torch.zeros(4, 6, 3, dtype=torch.uint8)}, 640)
  (run,) = runs(client, "videos")
  assert [file.path for file in client.list_artifacts(run.info.run_id, "videos")] == ["videos/000100.gif"]
  names = [Path(file.path).name for file in client.list_artifacts(run.info.run_id, "images")]
  assert any(name.startswith("seen") and "640" in name and name.endswith(".png") for name in names)


def test_a_training_without_a_server_does_not_start(tmp_path, monkeypatch, capsys):
  monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
  monkeypatch.setenv("MLFLOW_TRACKING_URI", nowhere())
  with pytest.raises(SystemExit) as end:
    train_toy(tmp_path, "none", "max_iterations=1")
  assert end.value.code == 2
  told, line = capsys.readouterr().err.splitlines()
  assert told == "log.mlflow=none starts a run; its server has 10 s to answer"
  assert line.startswith(f"error: log.mlflow=none starts no run at '{nowhere.last}' (")
  assert line.endswith("; set MLFLOW_TRACKING_URI to the address of a server")


def nowhere() -> str:
  """Return the address of a port where nobody listens."""
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    nowhere.last = f"http://127.0.0.1:{free.getsockname()[1]}"
  return nowhere.last


def test_a_server_that_is_silent_is_not_waited_for(tmp_path, monkeypatch):
  with socket.create_server(("127.0.0.1", 0)) as silent:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with pytest.raises(NoAnswer, match="timed out"):
      MlflowLog("none", tmp_path, 0)


def test_what_is_no_server_is_a_mistake(tmp_path, monkeypatch):
  monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing-like-it://")
  with pytest.raises(ConfigError, match=r"log\.mlflow=none starts no run at 'nothing-like-it://'"):
    MlflowLog("none", tmp_path, 0)
