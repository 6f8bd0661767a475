import json
import os
import signal
import threading
import time

import pytest

from gpurobot import sweep
from gpurobot.run.interrupt import Interrupt
from gpurobot.search.launch import execute
from gpurobot.settings.config import ConfigError
from tests.gpurobot.search.trials import TOY, train_here

pytestmark = [pytest.mark.usefixtures("keep_signal_handlers", "cluster"), pytest.mark.xdist_group("ray")]


def test_trials_on_a_cluster_leave_what_local_ones_leave(tmp_path, monkeypatch, capfd):
  monkeypatch.chdir(tmp_path)  # the folders of the runs are relative to it
  monkeypatch.setattr(sweep, "start", train_here)
  words = [*TOY, "seed=0,1", "jobs=2", "threads=1"]
  sweep.main([*words, "launcher=ray", "folder=there"])
  sweep.main([*words, "folder=here"])
  for seed in (0, 1):
    there, here = (
      json.loads((tmp_path / place / f"seed={seed}/summary.json").read_text()) for place in ("there", "here")
    )
    assert there["return"] == here["return"]
  out = capfd.readouterr().out
  assert out.count("seed=1: return") == 2


def test_a_trial_that_fails_is_named(tmp_path):
  said: list[str] = []
  _, [trial] = sweep.plan([*TOY, "threads=1", f"folder={tmp_path}"])
  trial.values["max_iterations"] = "many"
  assert execute([trial], 1, said.append, Interrupt(), sweep.starter(sweep.Launcher.ray))
  assert said == ["seed=0: failed with status 2: error: max_iterations=many is not a whole number"]


def test_an_interrupt_ends_the_trials_of_the_cluster(tmp_path):
  _, trials = sweep.plan([*TOY, "max_iterations=100000", "threads=1", "seed=0,1", f"folder={tmp_path}"])
  begin, said = sweep.starter(sweep.Launcher.ray), list[str]()

  def interrupt() -> None:
    while not (tmp_path / "seed=0/metrics.csv").exists():
      time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

  waiting = threading.Thread(target=interrupt)
  waiting.start()
  assert not execute(trials, 1, said.append, Interrupt(), begin)
  waiting.join()
  assert said == ["seed=0: interrupted"]
  assert (tmp_path / "seed=0/checkpoint.pt").exists()


def test_a_trial_larger_than_any_machine_is_refused(tmp_path):
  _, [trial] = sweep.plan([*TOY, "threads=999", f"folder={tmp_path}"])
  with pytest.raises(ConfigError, match="threads=999: the largest machine of the Ray cluster has 2 CPUs"):
    sweep.starter(sweep.Launcher.ray)(trial)
