"""Weights & Biases in offline mode: what its run files hold."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import gpurobot
import train
from gpurobot.run import checkpoint, metrics
from gpurobot.run.metrics import tagged
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy
from tests.test_train import rows

wandb = pytest.importorskip("wandb", reason="comes with the extra 'wandb'")
from wandb.proto import wandb_internal_pb2  # noqa: E402

from gpurobot.run.wandb_log import AXIS, WandbLog  # noqa: E402

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")
BLOCK, HEADER = 32768, 7  # of LevelDB's log format, which a run file has after its own header [bytes]


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
  monkeypatch.setenv("WANDB_MODE", "offline")
  monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
  monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
  yield
  wandb.teardown()  # it reads the environment once


def records(path: Path) -> Iterator[wandb_internal_pb2.Record]:
  """Yield the records of a run file."""
  data, at, record = path.read_bytes(), HEADER, b""
  while at + HEADER <= len(data):
    if BLOCK - at % BLOCK < HEADER:
      at += BLOCK - at % BLOCK
      continue
    _, length, kind = struct.unpack_from("<IHB", data, at)
    record += data[at + HEADER : at + HEADER + length]
    at += HEADER + length
    if kind in (1, 4):  # a whole record, or the last part of one
      yield wandb_internal_pb2.Record.FromString(record)
      record = b""


def by_key(items) -> dict[str, object]:
  return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}


class Kept:
  """What the run files in a folder hold, in the order of time."""

  def __init__(self, folder: Path):
    wandb.teardown()  # waits for the process that writes the files
    self.ids, self.config, self.rows, self.artifacts, self.status = [], {}, [], [], []
    for path in sorted((folder / "wandb").glob("offline-*/*.wandb"), key=lambda path: path.stat().st_mtime):
      for record in records(path):
        if record.HasField("run"):
          self.ids.append(record.run.run_id)
        for update in (record.run.config, record.config):
          self.config |= by_key(update.update)
        if record.HasField("history"):
          self.rows.append(by_key(record.history.item))
        if record.HasField("artifact"):
          self.artifacts.append(record.artifact)
        if record.HasField("exit"):
          self.status.append(record.exit.exit_code)


def train_toy(folder: Path, *words: str) -> int:
  return train.main([f"task={toy.__file__}", "log.wandb=tests", f"run_dir={folder}", "log_every=1", *words])


def test_a_run_has_settings_metrics_and_checkpoints(tmp_path):
  folder = tmp_path / "run"
  assert train_toy(folder, "max_iterations=8", "seed=7") == 0
  kept = Kept(folder)
  assert (kept.config["seed"], kept.config["ppo"]["horizon"], kept.config["log"]["wandb"]) == (7, 8, "tests")
  assert len(kept.rows) == 8
  for found, row in zip(kept.rows, rows(folder), strict=True):
    expected = tagged({column: float(value) for column, value in row.items()})
    assert {tag: found[tag] for tag in expected} == pytest.approx(expected)
  assert {tag for tag in kept.rows[-1] if not tag.startswith("_")} <= {
    metrics.find(column).tag for column in rows(folder)[0]
  }
  (artifact,) = kept.artifacts
  assert artifact.type == "model"
  sizes = {entry.path: entry.size for entry in artifact.manifest.contents}
  assert sizes == {name: (folder / name).stat().st_size for name in (checkpoint.NAME, checkpoint.BEST)}
  assert kept.status == [0]


def test_a_run_fails_if_the_next_logger_does_not_start(tmp_path, monkeypatch):
  monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing-like-it://")
  with pytest.raises(SystemExit, match="2"):
    train_toy(tmp_path, "log.mlflow=tests")
  assert Kept(tmp_path).status == [1]


def test_a_resumed_run_goes_on_and_tells_what_has_changed(tmp_path):
  folder = tmp_path / "run"
  train_toy(folder, "max_iterations=2")
  train.main([f"task={toy.__file__}", f"resume={folder}", "max_iterations=4"])
  kept = Kept(folder)
  assert len(kept.ids) >= 2
  assert len({*kept.ids}) == 1
  assert [found[AXIS] for found in kept.rows] == [512, 1024, 1536, 2048]
  assert kept.config["max_iterations"] == 4


def test_a_run_from_the_start_is_another_one(tmp_path):
  for _ in range(2):
    WandbLog("tests", tmp_path, 0).close(failed=False)
  assert len({*Kept(tmp_path).ids}) == 2


def test_a_video_and_what_the_policy_sees_are_kept(tmp_path):
  image = pytest.importorskip("PIL.Image")
  frames = [image.new("RGB", (16, 12), (shade, 0, 0)) for shade in (0, 200)]
  frames[0].save(tmp_path / "video.gif", save_all=True, append_images=frames[1:])
  log = WandbLog("tests", tmp_path, 0)
  log.write_video(tmp_path / "video.gif", 640)
  log.write_images({"front": torch.zeros(4, 6, 3, dtype=torch.uint8)}, 1280)
  log.close(failed=False)
  assert [row[AXIS] for row in Kept(tmp_path).rows] == [640, 1280]
  (copy,) = (tmp_path / "wandb").glob("offline-*/files/media/videos/*.gif")
  assert copy.read_bytes() == (tmp_path / "video.gif").read_bytes()
  (file,) = (tmp_path / "wandb").glob("offline-*/files/media/images/seen/front_*.png")
  assert image.open(file).size == (6, 4)


def test_a_run_that_does_not_start_says_why(tmp_path, monkeypatch):
  def refuse(**_):
    raise wandb.errors.AuthenticationError("API key\nis not configured")

  monkeypatch.setattr(wandb, "init", refuse)
  with pytest.raises(ConfigError, match=r"log\.wandb=tests starts no run \(API key is not configured\); run"):
    WandbLog("tests", tmp_path, 0)


def test_training_goes_on_without_a_server_that_is_silent(tmp_path, monkeypatch, caplog):
  caplog.set_level("INFO")
  limits = []

  def wait(settings, **_):
    limits.append(settings.init_timeout)
    raise wandb.errors.CommError("Timed out\nConsider")

  monkeypatch.setattr(wandb, "init", wait)
  run = gpurobot.train(toy.__file__, num_envs=32, max_iterations=1, run_dir=tmp_path, log={"wandb": "tests"})
  assert run.summary["warnings"] == ["log.wandb=tests: no answer (Timed out); training goes on without it"]
  assert limits == [10.0]
  assert "log.wandb=tests starts a run; its server has 10 s to answer" in caplog.messages
