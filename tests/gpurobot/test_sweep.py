import csv
import json
import sys

import numpy as np
import pytest

from gpurobot import sweep
from gpurobot.config import ConfigError
from tests.gpurobot import toy

TOY = [f"task={toy.__file__}", "max_iterations=1"]
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def finish(run: sweep.SweepRun, return_: float | None, speed: float = 1.0, level: float = 0.0) -> None:
  """Write the record that a run would leave: three rows, the last of which is at the level."""
  run.folder.mkdir(parents=True)
  summary = {"seed": run.config.seed, "return": return_, "iterations": 1, "steps": 512, "seconds": 3.0}
  (run.folder / "summary.json").write_text(json.dumps(summary | {"steps_per_second": speed}))
  with (run.folder / "metrics.csv").open("w") as file:
    file.write(f"seconds,return\n1.0,nan\n2.0,{level - 1}\n3.0,{level}\n")


def test_the_grid_takes_every_combination_and_brackets_hold_one_value(tmp_path):
  words = ["ppo.hidden=[8,8],[4]", "seed=3,5,5", "ppo.gamma=0.9", f"folder={tmp_path}"]
  _, runs = sweep.plan([*TOY, *words])
  assert [(run.config.ppo.hidden, run.config.seed) for run in runs] == [
    ([8, 8], 3),
    ([8, 8], 5),
    ([4], 3),
    ([4], 5),
  ]
  assert {run.config.ppo.gamma for run in runs} == {0.9}
  assert [run.name for run in runs][1] == "ppo.hidden=[8,8] seed=5"
  assert runs[1].folder == tmp_path / "ppo.hidden=[8,8]" / "seed=5"
  assert len({run.folder for run in runs}) == 4


def test_jobs_share_the_cores(tmp_path, monkeypatch):
  monkeypatch.setattr(sweep.os, "sched_getaffinity", lambda _: set(range(8)))
  for words, threads in ((["jobs=2"], 4), (["jobs=16"], 1), (["jobs=2", "threads=3"], 3)):
    _, [run] = sweep.plan([*TOY, *words, f"folder={tmp_path}"])
    assert [word for word in run.words if word.startswith("threads=")] == [f"threads={threads}"]
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  assert not any(word.startswith("threads=") for word in run.words)


@pytest.mark.parametrize(
  ("word", "message"),
  [
    ("job=2", "unknown key 'job'; the nearest is 'jobs'"),
    ("ppo.gama=1", "unknown key 'ppo.gama'; the nearest is 'ppo.gamma'"),
    ("seed", "'seed' has no value; write seed=<value>"),
    ("jobs=0", "jobs=0 is out of range; the nearest is 1"),
    ("run_dir=x", "a sweep sets run_dir and resume itself; write folder=<folder of the sweep>"),
    (
      "max_iterations=null",
      "the runs of a sweep need a limit; set one of max_iterations, max_steps, max_seconds",
    ),
  ],
)
def test_bad_words_are_told_in_one_line(tmp_path, word, message):
  with pytest.raises(ConfigError) as error:
    sweep.plan([*TOY, f"folder={tmp_path}", word])
  assert str(error.value) == message


def test_nothing_runs_where_one_combination_is_bad(tmp_path, capsys):
  with pytest.raises(SystemExit) as end:
    sweep.main([*TOY, "num_envs=64,63", "ppo.minibatches=16", f"folder={tmp_path / 'sweep'}"])
  assert end.value.code == 2
  assert capsys.readouterr().err.startswith("error: num_envs=63 does not divide evenly among 1 rank(s)")
  assert not (tmp_path / "sweep").exists()


def test_the_default_folder_is_named_by_the_tasks():
  settings, runs = sweep.plan([*TOY, "seed=1"])
  assert settings.folder == "runs/sweep/toy"
  assert str(runs[0].folder) == "runs/sweep/toy/seed=1"


def test_a_folder_of_another_run_is_not_taken_for_this_one(tmp_path):
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  run.folder.mkdir()
  (run.folder / "config.json").write_text(json.dumps(sweep.to_dict(run.config) | {"resume": "here"}))
  assert len(sweep.plan([*TOY, f"folder={tmp_path}"])[1]) == 1
  with pytest.raises(ConfigError, match=r"holds a run with another ppo\.gamma; choose another folder="):
    sweep.plan([*TOY, f"folder={tmp_path}", "ppo.gamma=0.5"])


def test_the_interquartile_mean_drops_a_quarter_at_either_end():
  assert sweep.interquartile_mean(np.array([9.0, 1.0, 2.0, 3.0])) == 2.5
  assert sweep.interquartile_mean(np.array([5.0, 100.0, 3.0, 4.0, -7.0])) == 4.0
  assert sweep.interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3.0
  assert list(sweep.interquartile_mean(np.array([[4.0, 8.0], [1.0, 2.0]]))) == [6.0, 1.5]


def test_the_interval_covers_95_percent():
  # Of two values, a resample is (a, a) with probability 1/4, (b, b) with 1/4: both ends are in the interval.
  assert sweep.bootstrap(np.array([1.0, 2.0])) == (1.0, 2.0)
  # Of many normal values the middle half's mean has a standard error of 1.09 / sqrt(n) (its influence
  # function: Huber 1964), here 0.0385: the interval is nearly 4 of them wide.
  values = np.random.default_rng(1).standard_normal(800)
  low, high = sweep.bootstrap(values)
  assert low < sweep.interquartile_mean(values) < high
  assert 0.13 < high - low < 0.18
  assert sweep.bootstrap(values) == (low, high)


def test_settings_are_compared_over_their_seeds(tmp_path):
  settings, runs = sweep.plan([*TOY, "seed=0,1,2,3,4", "ppo.gamma=0.9,0.8", f"folder={tmp_path}", "level=50"])
  slow, fast = [run for run in runs if run.config.ppo.gamma == 0.9], runs[1::2]
  for run, return_, speed in zip(slow, (10.0, 20.0, 30.0, 40.0, 1e6), (1, 2, 3, 4, 5), strict=True):
    finish(run, return_, speed, level=50 - run.config.seed // 3)  # seeds 3 and 4 do not reach it
  finish(fast[0], 7.0)
  finish(fast[1], None)
  rows = sweep.compare(runs, settings.level)
  assert [row["setting"] for row in rows] == ["ppo.gamma=0.9", "ppo.gamma=0.8"]
  assert [(row["runs"], row["missing"]) for row in rows] == [(5, 0), (1, 4)]
  assert (rows[0]["return"], rows[0]["steps_per_second"]) == (30, 3)
  assert rows[0]["seconds_to_level"] is None  # a run of the middle half is among those that do not reach it
  assert [result["seconds_to_level"] for result in rows[0]["results"]] == [3, 3, 3, None, None]
  assert sweep.compare(slow, 49)[0]["seconds_to_level"] == pytest.approx((2 + 2 + 3) / 3)
  assert (rows[1]["return"], rows[1]["return_low"], rows[1]["return_high"]) == (7, 7, 7)


def test_a_sweep_runs_skips_what_is_done_and_names_what_failed(tmp_path, capfd):
  broken = tmp_path / "broken.py"
  broken.write_text(
    "from tests.gpurobot.toy import PPO, Config\n"
    "from tests.gpurobot.toy import Task as Toy\n"
    "class Task(Toy):\n"
    "  def step(self, action):\n"
    "    raise SystemExit('the robot broke')\n"
  )
  folder = tmp_path / "sweep"
  words = ["num_envs=64", "max_iterations=4", f"folder={folder}", "jobs=2"]
  with pytest.raises(SystemExit) as end:
    sweep.main([f"task={toy.__file__},{broken}", *words])
  assert end.value.code == 1
  out = capfd.readouterr().out
  assert f"task={broken} seed=0: failed with status 1: the robot broke\n" in out
  with (folder / "results.csv").open() as file:
    good, bad = csv.DictReader(file)
  assert (good["runs"], good["missing"], bad["runs"], bad["missing"]) == ("1", "0", "0", "1")
  assert float(good["return_low"]) == float(good["return"]) < 0

  broken.write_text("from tests.gpurobot.toy import PPO, Config, Task\n")
  before = (folder / good["setting"].replace("/", "_") / "seed=0" / sweep.OUTPUT).read_text()
  sweep.main([f"task={toy.__file__},{broken}", *words])
  out = capfd.readouterr().out
  assert f"2 runs in {folder}, 1 of them already finished\n" in out
  assert [row["runs"] for row in json.loads((folder / "results.json").read_text())] == [1, 1]
  assert (folder / good["setting"].replace("/", "_") / "seed=0" / sweep.OUTPUT).read_text() == before


def test_an_interrupted_run_is_continued(tmp_path):
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  assert not any(word.startswith("resume=") for word in run.command())
  finish(run, 1.0)
  assert run.is_finished()
  summary = json.loads((run.folder / "summary.json").read_text())
  (run.folder / "summary.json").write_text(json.dumps(summary | {"iterations": 0}))
  (run.folder / "checkpoint.pt").touch()
  assert not run.is_finished()
  assert f"resume={run.folder}" in run.command()


def test_an_interrupt_ends_the_runs_and_starts_no_more(tmp_path, monkeypatch):
  program = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
    "os.kill(os.getppid(), signal.SIGINT)\n"
    "time.sleep(600)\n"
  )
  monkeypatch.setattr(sweep.SweepRun, "command", lambda _: [sys.executable, "-c", program])
  _, runs = sweep.plan([*TOY, "seed=0,1", f"folder={tmp_path}"])
  said = []
  sweep.execute(runs, 1, said.append)
  assert said == ["seed=0: interrupted"]
  assert not runs[1].folder.exists()
