import csv
import json

import pytest

from gpurobot import sweep
from gpurobot.search.trial import OUTPUT
from tests.gpurobot import toy
from tests.gpurobot.search.trials import TOY
from tests.mistakes.told import told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def test_the_grid_takes_every_combination_and_brackets_hold_one_value(tmp_path):
  words = ["ppo.hidden=[8,8],[4]", "seed=3,5,5", "ppo.gamma=0.9", f"folder={tmp_path}"]
  _, runs = sweep.plan([*TOY, *words])
  found = [(run.config.ppo.hidden, run.config.seed) for run in runs]
  assert found == [([8, 8], 3), ([8, 8], 5), ([4], 3), ([4], 5)]
  assert {run.config.ppo.gamma for run in runs} == {0.9}
  assert [run.name for run in runs][1] == "ppo.hidden=[8,8] seed=5"
  assert runs[1].folder == tmp_path / "ppo.hidden=[8,8]" / "seed=5"
  assert len({run.folder for run in runs}) == 4


def test_nothing_runs_where_one_combination_is_bad(tmp_path, capsys):
  words = [*TOY, "num_envs=64,63", "ppo.minibatches=16", f"folder={tmp_path / 'sweep'}"]
  assert told(capsys, sweep.main, words).startswith("num_envs=63 does not divide evenly among 1 rank(s)")
  assert not (tmp_path / "sweep").exists()


def test_the_default_folder_is_named_by_the_tasks():
  settings, runs = sweep.plan([*TOY, "seed=1"])
  assert settings.folder == "runs/sweep/toy"
  assert str(runs[0].folder) == "runs/sweep/toy/seed=1"


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
  before = (folder / good["setting"].replace("/", "_") / "seed=0" / OUTPUT).read_text()
  sweep.main([f"task={toy.__file__},{broken}", *words])
  out = capfd.readouterr().out
  assert f"2 runs in {folder}, 1 of them already finished\n" in out
  assert [row["runs"] for row in json.loads((folder / "results.json").read_text())] == [1, 1]
  assert (folder / good["setting"].replace("/", "_") / "seed=0" / OUTPUT).read_text() == before
