import pytest
import torch

import train
from gpurobot import replay
from gpurobot.deploy import trained
from gpurobot.run import divergence_dumps
from gpurobot.settings.config import ConfigError
from tests.gpurobot import fragile
from tests.mistakes.told import told

TASK = f"task={fragile.__file__}"
WORDS = [TASK, "num_envs=8", "threads=1", "ppo.horizon=4", "log_every=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  train.main([*WORDS, "max_iterations=3", f"run_dir={folder}"])
  return folder


@pytest.mark.parametrize("key", ["", "file="])
def test_a_folder_s_newest_is_told(key, folder, capsys):
  replay.main([f"{key}{folder}", TASK, "states=2"])
  first, _, *rows = capsys.readouterr().out.splitlines()
  assert first.startswith("environment 5 of ")
  assert first.endswith(" diverged at iteration 2: the velocity of joint slider inf; 4 states")
  assert [row.split()[0] for row in rows] == ["-1", "0"]
  assert "slider inf" in rows[-1]


def test_of_sane_states_the_reward_or_an_observation_is_named():
  states = {"qpos": torch.ones(2, 1), "qvel": torch.ones(2, 1)}
  names = {"qpos": ["hip"], "qvel": ["hip"]}
  told = replay.cause({"states": states, "reward": torch.tensor([1.0, torch.nan])}, names)
  assert told == "the reward, nan (positions and velocities are within bounds)"
  told = replay.cause({"states": states, "reward": torch.ones(2)}, names)
  assert told == "an observation (positions and velocities are within bounds)"


def test_states_are_drawn(folder, tmp_path, capsys, drawing):
  video = tmp_path / "video.gif"
  replay.main([f"file={folder}", TASK, f"video={video}", "width=64", "height=48"])
  assert capsys.readouterr().out.endswith(f"{video}: 3 states; 1 diverged states are left out\n")
  assert video.stat().st_size > 0


def test_a_record_of_states_is_no_policy(folder):
  (place, *_) = (folder / divergence_dumps.FOLDER).iterdir()
  with pytest.raises(ConfigError, match=r"holds no policy; show it with: python -m gpurobot[.]replay file="):
    trained.read(str(place))


def test_states_of_other_joints_are_not_told_under_the_names_of_these(folder, tmp_path, capsys):
  file = replay.find(str(folder))
  content = torch.load(file, weights_only=True)
  assert content["names"]["joint"] == ["slider", "hinge"]
  content["names"]["joint"] = ["slider", "wheel"]
  torch.save(content, tmp_path / "other.pt")
  words = [f"file={tmp_path / 'other.pt'}", TASK]
  line = told(capsys, replay.main, words)
  assert "was trained with joint 1 as 'wheel', which is 'hinge' now: " in line
  replay.main([*words, "changed=true"])
