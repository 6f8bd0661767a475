import math
import os
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from benchmarks import fast_td3, report, watch
from benchmarks.watch import Exam, Over, Watch
from tests.instances import thorough

TASK = "gym/InvertedPendulum-v5"
# What the benchmark asks of FastTD3: a script that asks for environments, builds its parts and steps.
SCRIPT = """
import sys
import torch
import wandb
from environments.mujoco_playground_env import make_env

class EmpiricalNormalization:
  def __init__(self, shape): pass
  def __call__(self, x, update=True): return x

def main():
  from fast_td3 import Actor
  assert "--seed=3" in sys.argv and "--no-compile" in sys.argv
  envs, _, _ = make_env("name", 3, 128)
  normalizer, actor = EmpiricalNormalization(envs.num_obs), Actor(envs.num_obs, envs.num_actions)
  obs = envs.reset()
  while True:
    before = obs.clone()
    following, rewards, dones, infos = envs.step(2 * torch.randn(envs.num_envs, envs.num_actions))
    assert torch.equal(obs, before) and infos["time_outs"].shape == dones.shape
    final = infos["observations"]["raw"]["obs"]
    assert torch.equal(final[~dones], following[~dones])
    obs = following
"""
NETWORKS = """
import torch

class Actor(torch.nn.Linear):
  pass
"""


def test_watch_stops_in_evaluations_and_keeps_the_first_time_at_the_level() -> None:
  times = [(wall, wall / 2) for wall in (0.0, 4.0, 10.0, 13.0, 20.0)]
  with mock.patch.object(watch, "_now", side_effect=times):
    seen = Watch(level=10, limit=4)
    seen.start()
    seen.stop()  # at 4 s
    seen.start()  # at 10 s
    seen.steps = 7
    seen.saw("log", math.nan)
    seen.saw("log", 9.0)
    seen.saw("log", 11.0)  # at 13 s, 7 s without the stop
    assert seen.reached == {"log": (7, 7.0, 3.5)}
    with pytest.raises(Over):
      seen.check()  # at 20 s
  assert seen.returns["log"] == [9.0, 11.0]


def test_watch_is_due_once_for_every_multiple() -> None:
  seen, due = Watch(0, 0), []
  for seen.steps in range(0, 60, 6):
    due += [seen.steps] * seen.due(20, 6)
  assert due == [24, 42]


def test_exam_counts_the_first_episode_of_each_environment() -> None:
  seen = Watch(0, 100)
  with mock.patch.object(watch, "EPISODES", 4):
    exam = Exam(TASK, seen)
    exam.take(lambda obs: torch.zeros(len(obs), 1))
    exam.take(lambda obs: torch.zeros(len(obs), 1))
  first, second = seen.returns["evaluated"]
  assert first == second  # it starts alike
  assert 5 < first < 1000  # a reward of 1 per step until the pole falls


@thorough
def test_peer_and_own_train_in_our_environments(tmp_path: Path, monkeypatch, capsys) -> None:
  folder = tmp_path / "fast_td3"
  folder.mkdir()
  (folder / "train.py").write_text(SCRIPT)
  (folder / "fast_td3.py").write_text(NETWORKS)
  monkeypatch.setattr(sys, "path", [*sys.path])
  monkeypatch.setattr(watch, "EPISODES", 8)
  monkeypatch.setattr(fast_td3, "EPISODES", 8)
  monkeypatch.setattr(fast_td3, "WINDOW", 1024)
  words = [f"folder={tmp_path}", f"task={TASK}", "seed=3", "seconds=1.5", "level=1000", "between=1024"]
  threads = torch.get_num_threads()
  try:
    with mock.patch.dict(sys.modules):
      for name in ("matched", "sac"):
        fast_td3.run([*words, f"runs=[{name}]"])
  finally:
    torch.set_num_threads(threads)
  found = report.read(capsys.readouterr().out)
  for name in ("matched", "sac"):
    figures = {key.rpartition("seed3.")[2]: value for key, value in found.items() if f".{name}." in key}
    assert figures["cpu_seconds"] >= 1.5
    assert figures["steps"] % 128 == 0
    assert 1 < figures["log.best"] <= 1000
    assert 1 < figures["evaluated.best"] <= 1000


def test_mistakes_end_in_one_line() -> None:
  with pytest.raises(SystemExit, match="folder=: write the folder of a checkout of FastTD3"):
    fast_td3.run(["runs=[matched]"])
  with pytest.raises(SystemExit, match="runs=ppo: write some of sac, td3, published, matched, tuned"):
    fast_td3.run([f"folder={os.curdir}", "runs=[ppo]"])
