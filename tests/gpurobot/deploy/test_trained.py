import re
import shutil

import pytest
import torch

import train
from gpurobot.deploy import trained
from gpurobot.deploy.trained import read
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError
from gpurobot.shell.programs import HELP
from tests.gpurobot import fragile, hopping_box, toy

TOY = f"task={toy.__file__}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs") / "run"
  train.main([TOY, f"run_dir={folder}", "max_iterations=1", "env.episode_steps=7"])
  return folder


def test_a_policy_and_the_best_one_meet_the_levels_that_their_training_reached(tmp_path):
  words = [f"task={fragile.__file__}", "num_envs=8", "threads=1", "ppo.horizon=4", "ppo.minibatches=1"]
  train.main([*words, f"run_dir={tmp_path}", "max_iterations=3"])
  given = {"checkpoint": str(tmp_path), "task": fragile.__file__}
  found = trained.load(trained.PolicySettings(**given), 4)
  content = read(str(tmp_path), given)[1]
  (rank,) = content["learner"].pop("ranks")
  assert found.env.levels_held
  assert found.env.age.tolist() == rank["env"]["memory"]["age"][::2].tolist() == [12] * 4
  best = tmp_path / checkpoint.BEST
  checkpoint.save(best, content)
  found = trained.load(trained.PolicySettings(checkpoint=str(best), task=fragile.__file__), 4)
  assert (found.env.levels_held, found.env.age.tolist()) == (True, [12] * 4)


def test_the_best_policy_of_a_run_is_named_by_a_word(folder, tmp_path, monkeypatch):
  run, words = tmp_path / "run", ["checkpoint=best", TOY]
  shutil.copytree(folder, run)
  message = rf"'{run}' has no best policy: it takes 100 episodes; leave checkpoint=best out"
  with pytest.raises(ConfigError, match=re.escape(message)):
    trained.parse(trained.PolicySettings(), [str(run), *words])
  best = str(shutil.copy(run / checkpoint.NAME, run / checkpoint.BEST))
  for place in (tmp_path, run, run / checkpoint.NAME):
    assert trained.parse(trained.PolicySettings(), [str(place), *words]).checkpoint == best
  own = str(shutil.copy(best, tmp_path / checkpoint.BEST))  # of a population, above its runs
  assert trained.parse(trained.PolicySettings(), [str(tmp_path), *words]).checkpoint == own
  with pytest.raises(ConfigError, match=r"^checkpoint=best follows a run folder"):
    trained.parse(trained.PolicySettings(), words)
  monkeypatch.chdir(tmp_path)
  run.rename("best")  # a folder of this name is one
  assert trained.parse(trained.PolicySettings(), words).checkpoint == "best"


def test_words_change_that_world(folder):
  settings = trained.parse(trained.PolicySettings(), [f"checkpoint={folder}", TOY, "env.episode_steps=9"])
  assert trained.load(settings, 3).env.max_episode_steps == 9
  with pytest.raises(ConfigError, match=r"the nearest is 'env[.]episode_steps'"):
    trained.parse(trained.PolicySettings(), [f"checkpoint={folder}", TOY, "env.episode_step=9"])


def test_the_first_word_may_be_the_run_or_the_folder_of_its_runs(folder, capsys):
  for place in (folder, folder.parent):
    settings = trained.parse(trained.PolicySettings(), [str(place), TOY])
    assert (settings.checkpoint, settings.env.episode_steps) == (str(folder), 7)
  with pytest.raises(checkpoint.CheckpointError, match="no checkpoint at 'nowhere'"):
    trained.parse(trained.PolicySettings(), ["nowhere"])


@pytest.mark.parametrize("word", HELP)
def test_help_shows_the_settings_of_the_checkpoint_s_task(folder, word, capsys):
  trained.start(trained.PolicySettings(), "show", [f"checkpoint={folder}", TOY, word], pytest.fail)
  printed = capsys.readouterr().out
  assert printed.startswith("usage: show [key=value ...]")
  assert "env.episode_steps=7" in printed


def test_mujoco_c_is_on_the_cpu_whatever_device_was_asked_for(box_run, monkeypatch):
  content = read(str(box_run), {"task": hopping_box.__file__})
  monkeypatch.setattr(trained.World, "device", lambda *_: torch.device("meta"))
  monkeypatch.setattr(trained, "read", lambda *_: content)
  settings = trained.PolicySettings(checkpoint=str(box_run), task=hopping_box.__file__)
  found = trained.load(settings, 3, trained.Engine.mujoco)
  assert found.env.reset()["policy"].device.type == "cpu"


def test_gymnasium_s_environment_takes_no_settings(folder):
  settings = trained.parse(trained.PolicySettings(), [f"checkpoint={folder}", TOY, "env.episode_steps=9"])
  with pytest.raises(
    ConfigError, match=r"supports only the task's default settings, not env.episode_steps=9"
  ):
    trained.load(settings, 3, trained.Engine.gymnasium)
