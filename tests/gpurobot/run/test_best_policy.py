"""Best policy of a run: which one is kept, when it is written, and what a resume makes of it."""

from pathlib import Path

import pytest
import torch

import train
from gpurobot.run import checkpoint
from gpurobot.run.best_policy import BestPolicy
from gpurobot.run.files import PART
from gpurobot.run.returns import Returns
from gpurobot.settings.config import TrainConfig
from tests.gpurobot import toy
from tests.mistakes.told import told

TOY = f"task={toy.__file__}"
ROW = 100  # environment steps


class Learner:
  """A policy of one weight."""

  def __init__(self):
    self.steps, self.weight = 0, torch.zeros(1)

  def policy_dict(self):
    return {"weight": self.weight}


class Training:
  """A learner whose weight counts its rows, and what is kept of it."""

  def __init__(self, folder: Path, resume: Path | None = None):
    self.learner, self.returns = Learner(), Returns()
    self.best = BestPolicy(TrainConfig(resume=resume and str(resume)), self.learner, folder)

  def add(self, *means: float, episodes: float = 100) -> "Training":
    for mean in means:
      self.learner.steps += ROW
      self.learner.weight += 1
      self.returns.add(mean, episodes, self.learner.steps, 1.0)
      self.best.offer(self.returns)
    return self


def kept(folder: Path) -> tuple[float, int, float]:
  """Return the weight, steps and mean return of the policy that was written."""
  found = checkpoint.load(folder / checkpoint.BEST)
  return found["learner"]["weight"].item(), found["steps"], found["return"]


def test_the_policy_with_the_highest_mean_is_kept_and_of_equal_ones_the_first(tmp_path):
  training = Training(tmp_path).add(1.0, 3.0, 2.0, 3.0)
  assert not (tmp_path / checkpoint.BEST).exists()  # nothing is written before a checkpoint is due
  assert training.best.write() == []
  assert kept(tmp_path) == (2, 2 * ROW, 3.0)


def test_it_is_written_once(tmp_path):
  training = Training(tmp_path).add(3.0)
  training.best.write()
  (tmp_path / checkpoint.BEST).unlink()
  training.add(2.0).best.write()
  assert not (tmp_path / checkpoint.BEST).exists()


def test_few_episodes_are_no_best_policy(tmp_path):
  training = Training(tmp_path).add(9.0, episodes=99)
  training.best.write()
  assert not (tmp_path / checkpoint.BEST).exists()
  training.add(0.0, episodes=201).best.write()
  assert kept(tmp_path) == (2, 2 * ROW, 0.0)


def test_a_resumed_run_replaces_it_by_a_better_one_alone(tmp_path):
  Training(tmp_path).add(3.0).best.write()
  Training(tmp_path, resume=tmp_path).add(2.0, 3.0).best.write()
  assert kept(tmp_path) == (1, ROW, 3.0)
  Training(tmp_path, resume=tmp_path).add(2.0, 4.0).best.write()
  assert kept(tmp_path) == (2, 2 * ROW, 4.0)


def test_a_new_run_starts_anew(tmp_path):
  Training(tmp_path).add(3.0).best.write()
  Training(tmp_path).add(2.0).best.write()
  assert kept(tmp_path)[2] == 2.0
  (tmp_path / checkpoint.BEST).write_bytes(b"half")  # it is replaced, and by a resumed run too
  Training(tmp_path, resume=tmp_path).add(1.0).best.write()
  assert kept(tmp_path)[2] == 1.0


def test_a_full_disk_is_told_and_the_policy_is_written_later(tmp_path):
  part = tmp_path / f"{checkpoint.BEST}{PART}"
  part.symlink_to("/dev/full")
  training = Training(tmp_path).add(3.0)
  (warning,) = training.best.write()
  assert warning.startswith(f"{tmp_path / checkpoint.BEST} could not be written ([Errno 28]")
  assert training.add(1.0).best.write() == []
  assert kept(tmp_path) == (1, ROW, 3.0)


@pytest.mark.usefixtures("keep_signal_handlers")
def test_a_resumed_training_keeps_what_the_uninterrupted_one_keeps(tmp_path, capsys):
  whole, parts = tmp_path / "whole", tmp_path / "parts"
  for folder, iterations in ((whole, 16), (parts, 9), (parts, 16)):
    words = ["resume=auto", f"run_dir={folder}", f"max_iterations={iterations}", "log_every=1"]
    assert train.main([TOY, *words]) == 0
  found, expected = (checkpoint.load(folder / checkpoint.BEST) for folder in (parts, whole))
  assert (found["steps"], found["return"]) == (expected["steps"], expected["return"])
  for name, weights in expected["learner"]["network"].items():
    assert torch.equal(found["learner"]["network"][name], weights)
  assert f"\n  best policy  {parts / checkpoint.BEST}\n" in capsys.readouterr().out


@pytest.mark.usefixtures("keep_signal_handlers")
def test_it_starts_a_run_but_resumes_none(tmp_path, capsys):
  best = tmp_path / "a" / checkpoint.BEST
  for words in ([f"run_dir={tmp_path / 'a'}"], [f"run_dir={tmp_path / 'b'}", f"checkpoint={best}"]):
    assert train.main([TOY, "max_iterations=8", "log_every=1", *words]) == 0
  message = f"holds a policy alone, with no training to resume; start a new run by checkpoint={best}"
  assert told(capsys, train.main, [TOY, f"resume={best}"]) == f"'{best}' {message}"
