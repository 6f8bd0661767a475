"""Mistakes in the content of files that a training continues: the file and the part are named."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import train
from gpurobot import evaluate
from gpurobot.run import checkpoint
from tests.mistakes.told import SMALL, TOY, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")
ANY = object()  # no value: the part is missing
NAN, WEIGHT = torch.nan, ("learner", "network", "actor.layers.0.weight")
NONE, OTHER = "is not a checkpoint of gpurobot: ", "does not fit "
POLICY: list[tuple[tuple[Any, ...], Any, str]] = [  # where, what is there, what is told of it
  (("config",), ANY, f"{NONE}it has no settings"),
  (("config",), [], f"{NONE}it has no settings"),
  (("config", "task"), 3, f"{NONE}it names no task"),
  (("learner",), ANY, "holds no policy; show it with: python -m gpurobot.replay"),
  (("learner",), None, f"{NONE}its policy is None"),
  (("learner",), {}, "it lacks '"),
  (("seconds",), "x", f"{NONE}it has seconds='x'"),
  (("seconds",), -1, f"{NONE}it has seconds=-1"),
  (("learner", "network"), ANY, "it lacks 'network'"),
  (("learner", "network"), "x", "network is a str, not a dictionary"),
  (WEIGHT, ANY, "Missing key(s) in state_dict"),
  (WEIGHT, torch.ones(1), "network.actor.layers.0.weight has shape [1], not [8, 2]"),
  (WEIGHT, torch.ones(8, 2, dtype=torch.int32), "weight is of torch.int32, not torch.fl"),
  (WEIGHT, [1.0], "network.actor.layers.0.weight is a list, not a tensor"),
  (WEIGHT, torch.full((8, 2), NAN), "weight is not finite: take an earlier checkpoint"),
  (("learner", "observations", "policy", "m2"), torch.full((2,), NAN), "policy.m2 is not finite"),
]  # fmt: skip
TRAINING: list[tuple[tuple[Any, ...], Any, str]] = [
  (("learner", "value_moments", "mean"), torch.full((1,), NAN), "value_moments.mean is not finite"),
  (("learner", "iteration"), 1.5, "iteration is a float, not a int"),
  (("learner", "ranks"), [], "it was written by 0 ranks, not 1"),
  (("learner", "ranks"), [3], "environments is a int, not a dictionary"),
  (("learner", "ranks", 0, "env", "position"), torch.ones(1, 2), "env.position has shape [1, 2], "),
  (("learner", "optimizer", "adam"), {}, "it lacks 0"),
  (("learner", "optimizer", "rate"), torch.tensor(NAN), "optimizer.rate is not finite: take an"),
  (("learner", "random"), None, "'NoneType' object is not subscriptable"),
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
  """A run folder."""
  folder = tmp_path_factory.mktemp("trained")
  train.main([TOY, *SMALL, "log_every=1", f"run_dir={folder}"])
  return folder


def change(folder: Path, place: tuple[Any, ...], value: Any) -> None:
  """Put a value into the checkpoint of a run folder."""
  content = part = torch.load(folder / checkpoint.NAME, weights_only=True)
  for key in place[:-1]:
    part = part[key]
  if value is ANY:
    del part[place[-1]]
  else:
    part[place[-1]] = value
  torch.save(content, folder / checkpoint.NAME)


def name(value: Any) -> str:
  return ".".join(map(str, value)) if isinstance(value, tuple) else ""


@pytest.mark.parametrize(("place", "value", "message"), POLICY, ids=name)
def test_in_a_policy(place, value, message, trained, tmp_path, capsys):
  run = shutil.copytree(trained, tmp_path / "run")
  change(run, place, value)
  for program, words in (
    (train.main, [f"resume={run}", TOY, "max_iterations=2"]),
    (train.main, [TOY, *SMALL, f"checkpoint={run}", f"run_dir={tmp_path / 'new'}"]),
    (evaluate.main, [f"checkpoint={run}", TOY, "episodes=1"]),
  ):
    line = told(capsys, program, words)
    assert line.startswith(f"'{run}")
    assert message in line


@pytest.mark.parametrize(("place", "value", "message"), TRAINING, ids=name)
def test_in_a_training(place, value, message, trained, tmp_path, capsys):
  run = shutil.copytree(trained, tmp_path / "run")
  change(run, place, value)
  before = {path: path.read_bytes() for path in run.iterdir() if path.suffix in (".pt", ".csv")}
  line = told(capsys, train.main, [f"resume={run}", TOY, "max_iterations=2"])
  assert line.startswith(f"'{run}' {OTHER}this training: ")
  assert message in line
  assert before == {path: path.read_bytes() for path in before}  # nothing is lost


@pytest.mark.parametrize(
  ("log", "reason"),
  [
    ("a,b\n1,2\n", "it lacks the column 'steps'"),
    ("steps,return,episodes\n1,2,3\n", "it lacks the column 'seconds'"),
    ("steps,return,seconds\nx,1,2\n", "invalid literal for int() with base 10: 'x'"),
    ("steps,return,seconds\n1\n", ""),
    ("\udcff\n1\n", "'utf-8' codec can't decode byte 0xff"),
  ],
)
def test_in_the_log_of_a_run(log, reason, trained, tmp_path, capsys):
  run = shutil.copytree(trained, tmp_path / "run")
  file = run / "metrics.csv"
  file.write_bytes(log.encode(errors="surrogateescape"))
  line = told(capsys, train.main, [f"resume={run}", TOY, "max_iterations=2"])
  assert line.startswith(f"'{file}' is not the log of a run ({reason}")
  assert line.endswith("): move it elsewhere, and resume")
  assert file.read_bytes() == log.encode(errors="surrogateescape")
