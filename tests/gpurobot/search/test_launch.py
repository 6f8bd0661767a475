import os
import signal

import pytest

from gpurobot import sweep
from gpurobot.device.distributed import World
from gpurobot.run.folder import claim
from gpurobot.run.interrupt import Interrupt
from gpurobot.search.launch import execute, start
from gpurobot.search.trial import Trial
from gpurobot.settings.config import ConfigError
from tests.gpurobot.search.trials import TOY, finish

PROGRAMS = ("", "import time; time.sleep(600)")  # of two runs: one that ends, one that lasts
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def test_an_interrupt_ends_the_runs_and_starts_no_more(tmp_path, monkeypatch):
  program = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
    "os.kill(os.getppid(), signal.SIGINT)\n"
    "time.sleep(600)\n"
  )
  monkeypatch.setattr(Trial, "command", lambda _: ["-c", program])
  _, runs = sweep.plan([*TOY, "seed=0,1", f"folder={tmp_path}"])
  said = []
  assert not execute(runs, 1, said.append, Interrupt())
  assert said == ["seed=0: interrupted"]
  assert not runs[1].folder.exists()


@pytest.mark.parametrize("ends", [True, False])
def test_a_trial_that_a_killed_sweep_left_running_is_waited_for(tmp_path, ends):
  """If it was stopped before its end, it goes on."""
  _, (trial,) = sweep.plan([*TOY, f"folder={tmp_path}"])
  _, lock = claim(trial.config, World())
  said, begun = [], []

  class Process:
    def poll(self):
      finish(trial, 7.0)
      return 0

  def say(line):
    said.append(line)
    if ends:
      finish(trial, 5.0)
    lock.close()

  def begin(one):
    begun.append(one)
    return Process()

  assert execute([trial], 1, say, Interrupt(), begin)
  assert said[0].endswith(" still trains it; waiting for its end")
  assert said[1:] == [f"seed=0: return {5 if ends else 7}, 512 steps in 3 s"]
  assert begun == ([] if ends else [trial])


def test_a_trial_whose_folder_another_sweep_has_taken_first_is_waited_for(tmp_path):
  """A sweep that is killed just after it has started a run leaves one that has locked nothing yet."""
  _, (trial,) = sweep.plan([*TOY, f"folder={tmp_path}"])
  said, locks = [], []

  class Process:
    def poll(self):
      locks.append(claim(trial.config, World())[1])
      return 2

  def say(line):
    said.append(line)
    if locks:
      finish(trial, 5.0)
      locks.pop().close()

  assert execute([trial], 1, say, Interrupt(), lambda _: Process())
  assert said[0].endswith(" still trains it; waiting for its end")
  assert said[1:] == ["seed=0: return 5, 512 steps in 3 s"]


def test_an_interrupt_between_two_parts_of_a_sweep_starts_no_more(tmp_path):
  _, runs = sweep.plan([*TOY, f"folder={tmp_path}"])
  interrupt, begun = Interrupt(), []
  os.kill(os.getpid(), signal.SIGTERM)
  assert not execute(runs, 1, print, interrupt, begun.append)
  assert begun == []


def test_an_interrupt_waits_for_no_training_of_another_sweep(tmp_path):
  _, (trial,) = sweep.plan([*TOY, f"folder={tmp_path}"])
  _, lock = claim(trial.config, World())
  said = []

  def say(line):
    said.append(line)
    if len(said) == 1:
      os.kill(os.getpid(), signal.SIGINT)

  with lock:
    assert not execute([trial], 1, say, Interrupt())
  assert said[1:] == ["seed=0: interrupted"]


def test_a_metric_that_no_log_has_ends_the_sweep_and_its_runs(tmp_path, monkeypatch):
  _, runs = sweep.plan([*TOY, "seed=0,1", f"folder={tmp_path}", "metric=sucess"])
  monkeypatch.setattr(Trial, "command", lambda trial: ["-c", PROGRAMS[trial.config.seed]])
  finish(runs[0], 1.0)
  (runs[0].folder / "summary.json").rename(tmp_path / "summary.json")
  started = []

  def begin(trial):
    started.append(start(trial))
    if trial is runs[0]:
      (tmp_path / "summary.json").rename(trial.folder / "summary.json")
    return started[-1]

  with pytest.raises(ConfigError, match="metric=sucess is no column of"):
    execute(runs, 2, lambda _: None, Interrupt(), begin)
  assert started[1].wait(60) == -signal.SIGTERM
