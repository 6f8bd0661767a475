"""Evaluation of trained seeds in two engines: which seeds count, and when the file is written."""

import pytest

from benchmarks import cases
from benchmarks.learning import transfer


@pytest.fixture
def runs(tmp_path, monkeypatch):
  """Put run folders and results into a folder; cartpole's seeds are 0, 1 and 2."""
  monkeypatch.setattr(transfer, "FOLDER", tmp_path / "transfer")
  monkeypatch.setattr(transfer, "run_folder", lambda task, seed: tmp_path / f"{task}-{seed}")
  monkeypatch.setattr(cases, "CURVES", (cases.Curve("cartpole", 30, ()),))
  return tmp_path


def test_means_are_over_the_seeds_that_have_a_run(runs, monkeypatch, capsys):
  for seed in (1, 2):
    (runs / f"cartpole-{seed}").mkdir()
  own = {"cartpole-1": 400.0, "cartpole-2": 500.0}
  monkeypatch.setattr(
    transfer, "evaluate", lambda run, engine: {"return": own[run.name] - 9 * (engine == "mujoco")}
  )
  transfer.run(["cartpole"])
  assert (runs / "transfer" / "cartpole.txt").read_text().splitlines() == [
    "transfer.cartpole.seeds: 2",
    "transfer.cartpole.own.return: 450",
    "transfer.cartpole.mujoco.return: 441",
    "transfer.cartpole.difference: 0.02",
  ]
  assert "there is no run" in capsys.readouterr().err
