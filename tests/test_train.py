"""The whole program on the toy task: files of a run, resuming, signals."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint, folder
from gpurobot.run.files import PART
from gpurobot.settings.config import TrainConfig
from tests.gpurobot import toy
from tests.mistakes.told import told

ROOT = Path(__file__).parents[1]
TOY = f"task={toy.__file__}"
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def run(place: Path, *words: str) -> dict:
  train.main([TOY, f"run_dir={place}", "log_every=1", *words])
  return checkpoint.read(place)["learner"]


def rows(place: Path) -> list[dict[str, str]]:
  with (place / "metrics.csv").open() as file:
    return list(csv.DictReader(file))


def same(a: dict, b: dict) -> bool:
  return all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_leaves_its_record(tmp_path, capsys):
  run(tmp_path, "max_iterations=4", "log_every=2", "seed=3")
  summary = json.loads((tmp_path / "summary.json").read_text())
  assert (summary["iterations"], summary["steps"], summary["seed"]) == (4, 4 * 64 * 8, 3)
  found = rows(tmp_path)
  assert [row["iteration"] for row in found] == ["2", "4"]
  weights = [float(row["episodes"]) for row in found]  # fewer than 100 in all
  returns = np.average([float(row["return"]) for row in found], weights=weights)
  assert summary["return"] == pytest.approx(returns)
  assert returns < 0
  assert summary["steps_per_second"] == pytest.approx(summary["steps"] / summary["seconds"])
  assert float(found[-1]["reward/distance"]) < 0 < float(found[-1]["speed"])
  lines = capsys.readouterr().out.splitlines()
  heading = next(i for i, line in enumerate(lines) if "steps/s" in line)
  for word in ("iter", "physics", "policy", "update", "return", "length", "KL", "entropy", "v loss", "rate"):
    assert word in lines[heading]
  assert len(lines[heading + 1]) == len(lines[heading])
  board = EventAccumulator(str(tmp_path)).Reload()
  assert [event.step for event in board.Scalars("episode/return")] == [1024, 2048]
  assert board.Scalars("policy/kl")[-1].value == pytest.approx(float(found[-1]["kl"]), rel=1e-6)
  assert b"ppo.gamma=0.99" in board.Tensors("config/text_summary")[0].tensor_proto.string_val[0]


@pytest.mark.parametrize(
  ("limit", "iterations"), [("max_steps=1025", 3), ("max_iterations=2", 2), ("max_seconds=0", 0)]
)
def test_limits_end_a_run(tmp_path, limit, iterations):
  assert run(tmp_path, limit)["iteration"] == iterations


OFF_POLICY = ("horizon=4", "batch_size=64", "buffer_size=1024", "hidden=[8]", "critic_hidden=[8]")


@pytest.mark.parametrize(
  "words",
  [
    (),
    ("ppo.critic=twohot", "ppo.recurrent=gru", "ppo.state_std=true", "ppo.rnd.weight=0.1"),
    ("overlap=true",),
    ("algorithm=sac", *(f"sac.{word}" for word in OFF_POLICY)),
    ("algorithm=td3", *(f"td3.{word}" for word in OFF_POLICY)),
    ("algorithm=distill", "teacher=<teacher>", "ppo.recurrent=lstm", "distill.mix_steps=2000"),
  ],
)
def test_a_resumed_run_repeats_the_uninterrupted_one(tmp_path, words):
  if "algorithm=distill" in words:
    run(tmp_path / "teacher", "max_iterations=1")
    words = [word.replace("<teacher>", str(tmp_path / "teacher")) for word in words]
  words = ["log_every=2", *words]  # the checkpoint lies between two rows
  whole = run(tmp_path / "whole", "max_iterations=4", *words)
  run(tmp_path / "parts", "max_iterations=3", *words)
  train.main([TOY, f"resume={tmp_path / 'parts'}", "max_iterations=4"])
  parts = checkpoint.read(tmp_path / "parts")["learner"]
  assert same(whole["network"], parts["network"])
  assert same(whole["ranks"][0]["env"]["random"], parts["ranks"][0]["env"]["random"])
  told_by_the_clock = re.compile(r"time/|(steps_per_)?second|memory/|utilisation")
  columns = [name for name in rows(tmp_path / "whole")[0] if not told_by_the_clock.match(name)]
  table = [[[row[c] for c in columns] for row in rows(tmp_path / name)] for name in ("whole", "parts")]
  assert table[0] == table[1]
  assert scalars(tmp_path / "whole") == scalars(tmp_path / "parts")


def scalars(place: Path) -> dict[str, list[tuple[int, float]]]:
  """Return what TensorBoard shows of a run, but for what the clock and the machine say."""
  board = EventAccumulator(str(place)).Reload()
  tags = [tag for tag in board.Tags()["scalars"] if not re.match(r"time/|speed/|machine/|.*seconds", tag)]
  return {tag: [(event.step, event.value) for event in board.Scalars(tag)] for tag in tags}


def test_a_replay_buffer_that_is_gone_is_named_and_can_be_left_out(tmp_path, capsys):
  words = ("algorithm=sac", *(f"sac.{word}" for word in OFF_POLICY))
  run(tmp_path / "a", "max_iterations=6", *words)
  (gone, *_) = (tmp_path / "a" / "replay").iterdir()
  gone.unlink()
  shutil.copytree(tmp_path / "a", tmp_path / "b")
  line = told(capsys, train.main, [TOY, f"resume={tmp_path / 'a'}", "max_iterations=9"])
  assert line.startswith("its replay buffer cannot be read (")
  assert line.endswith("; add sac.save_buffer=false to fill a new one")
  train.main([TOY, f"resume={tmp_path / 'b'}", "max_iterations=9", "sac.save_buffer=false"])
  assert checkpoint.read(tmp_path / "b")["learner"]["iteration"] == 9


@pytest.mark.parametrize(
  ("word", "message"),
  [
    ("sac.storage=float16", "its replay buffer has sac.storage=float32; leave sac.storage out, or add"),
    ("sac.prioritized=true", "its replay buffer has sac.prioritized=false; leave sac.prioritized out"),
    ("sac.buffer_size=2048", "its replay buffer has sac.buffer_size=1024; leave sac.buffer_size out, or add"),
    ("sac.horizon=2", "it has sac.horizon=4; leave sac.horizon out, or start a new run by checkpoint="),
  ],
)
def test_what_a_replay_buffer_fixes_is_told_and_can_be_left_out(tmp_path, capsys, word, message):
  run(tmp_path, "max_iterations=3", "algorithm=sac", *(f"sac.{word}" for word in OFF_POLICY))
  words = [TOY, f"resume={tmp_path}", "max_iterations=6", word]
  message = f"'{tmp_path}' does not fit this training: {message}"
  assert told(capsys, train.main, words).startswith(message)
  if "horizon" not in word:
    assert train.main([*words, "sac.save_buffer=false"]) == 0


@pytest.mark.parametrize("words", [("ppo.lr=1e-5", "ppo.schedule=constant"), ("ppo.lr=1e-5",), ()])
def test_a_resumed_run_takes_another_learning_rate(tmp_path, words):
  run(tmp_path, "max_iterations=3", "ppo.lr=1e-3")
  train.main([TOY, f"resume={tmp_path}", "max_iterations=4", *words])
  before, after = (float(row["learning_rate"]) for row in rows(tmp_path)[-2:])
  first = 1e-5 if words else before
  epochs = 0 if "ppo.schedule=constant" in words else 4
  assert first / 1.5**epochs <= after * 1.0001
  assert after <= first * 1.5**epochs * 1.0001


def test_a_resumed_run_leaves_the_adapted_rate_for_a_constant_one(tmp_path):
  run(tmp_path, "max_iterations=3", "ppo.lr=1e-3", "ppo.kl_target=1e-9")
  assert float(rows(tmp_path)[-1]["learning_rate"]) < 1e-3
  train.main([TOY, f"resume={tmp_path}", "max_iterations=4", "ppo.schedule=constant"])
  assert float(rows(tmp_path)[-1]["learning_rate"]) == pytest.approx(1e-3)


def test_a_network_that_does_not_fit_is_told_with_the_settings_that_do(tmp_path, capsys):
  run(tmp_path / "a", "max_iterations=0", "ppo.recurrent=gru", "ppo.recurrent_units=8")
  words = [TOY, f"run_dir={tmp_path / 'b'}", f"checkpoint={tmp_path / 'a'}"]
  assert "; it was trained with ppo.recurrent=gru ppo.recurrent_units=8" in told(capsys, train.main, words)


def test_another_activation_is_told_though_the_weights_fit(tmp_path, capsys):
  run(tmp_path / "a", "max_iterations=0")
  run(tmp_path / "b", "max_iterations=0", f"checkpoint={tmp_path / 'a'}", "ppo.activation=relu")
  told = f"the policy of '{tmp_path / 'a'}' may act otherwise here: it was trained with ppo.activation=silu"
  assert told in capsys.readouterr().err


def test_iterations_that_only_fill_a_replay_buffer_are_no_trouble(tmp_path, capsys):
  words = ("algorithm=sac", *(f"sac.{word}" for word in OFF_POLICY))
  run(tmp_path, "max_iterations=5", "log_every=1", "sac.learning_starts=16", *words)
  assert "not finite" not in capsys.readouterr().err
  assert [row["value_loss"] == "nan" for row in rows(tmp_path)] == [True, True, True, False, False]


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(tmp_path):
  run(tmp_path, "max_iterations=3")
  saved = (tmp_path / checkpoint.NAME).read_bytes()
  train.main([TOY, f"resume={tmp_path}", "max_iterations=5"])
  (tmp_path / checkpoint.NAME).write_bytes(saved)
  train.main([TOY, f"resume={tmp_path}", "max_iterations=4"])
  assert [row["iteration"] for row in rows(tmp_path)] == ["1", "2", "3", "4"]


def test_a_checkpoint_can_start_another_run(tmp_path):
  first = run(tmp_path / "a", "max_iterations=2")
  second = run(tmp_path / "b", "max_iterations=0", f"checkpoint={tmp_path / 'a' / checkpoint.NAME}")
  assert same(first["network"], second["network"])
  assert second["iteration"] == 0


def wait_for(path: Path, process: subprocess.Popen) -> None:
  while not path.exists():
    assert process.poll() is None, "ended too early"
    time.sleep(0.05)


def test_a_signal_saves_and_ends_cleanly(tmp_path):
  command = [sys.executable, "train.py", TOY, f"run_dir={tmp_path}", "log_every=1"]
  with subprocess.Popen(
    command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
  ) as process:
    wait_for(tmp_path / "metrics.csv", process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=600)
  assert process.returncode == 128 + signal.SIGTERM, errors
  assert "Traceback" not in errors
  summary = json.loads((tmp_path / "summary.json").read_text())
  assert checkpoint.read(tmp_path)["learner"]["iteration"] == summary["iterations"] > 0


def test_a_second_run_in_a_folder_is_refused(tmp_path, capsys):
  _, lock = folder.claim(TrainConfig(run_dir=str(tmp_path)), World())
  words = [TOY, f"run_dir={tmp_path}", "max_iterations=1"]
  with lock:
    line = told(capsys, train.main, words)
  assert f" is running in '{tmp_path}'; wait for it, or choose another run_dir" in line
  train.main(words)
  assert told(capsys, train.main, words).startswith(f"'{tmp_path}' holds the checkpoint of another training")


def test_a_damaged_checkpoint_costs_the_iterations_since_the_one_before(tmp_path, capsys):
  whole = run(tmp_path / "whole", "max_iterations=5")
  run(tmp_path / "parts", "max_iterations=3", "checkpoint_seconds=0")
  path, before = (tmp_path / "parts" / name for name in (checkpoint.NAME, checkpoint.PREVIOUS))
  good = before.read_bytes()
  path.write_bytes(path.read_bytes()[:1000])
  train.main([TOY, f"resume={tmp_path / 'parts'}", "max_iterations=5", "checkpoint_seconds=600"])
  assert f"warning: '{path}' is not a readable checkpoint" in capsys.readouterr().err
  assert same(whole["network"], checkpoint.load(path)["learner"]["network"])
  assert before.read_bytes() == good  # it is kept
  assert [row["iteration"] for row in rows(tmp_path / "parts")] == ["1", "2", "3", "4", "5"]


def warnings(place: Path) -> list[str]:
  return json.loads((place / "summary.json").read_text())["warnings"]


def test_a_full_disk_is_told_and_survived(tmp_path):
  (tmp_path / f"{checkpoint.NAME}{PART}").symlink_to("/dev/full")  # until something else is deleted
  assert run(tmp_path, "max_iterations=3", "checkpoint_seconds=0")["iteration"] == 3
  first, second = warnings(tmp_path)
  assert first.startswith("the checkpoint could not be written ([Errno 28] No space left on device); train")
  assert second == "checkpoints can be written again"


def test_a_training_whose_end_is_not_saved_leaves_with_status_1(tmp_path, monkeypatch):
  def refuse(*_):
    raise OSError(28, "No space left on device")

  run(tmp_path, "max_iterations=1")
  monkeypatch.setattr(checkpoint, "write", refuse)
  monkeypatch.setattr("gpurobot.run.csv_log.append", refuse)
  words = [TOY, f"resume={tmp_path}", "max_iterations=4", "checkpoint_seconds=0"]
  assert train.main(words) == 1
  assert [text.partition(" (")[0] for text in warnings(tmp_path)] == [
    "the checkpoint could not be written",
    "metrics.csv could not be written",
    "metrics.csv: 3 writes failed",
  ]
  assert checkpoint.read(tmp_path)["learner"]["iteration"] == 1
