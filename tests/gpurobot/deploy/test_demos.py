import json
import warnings

import pytest
import torch

import tasks
import train
from gpurobot import evaluate, export
from gpurobot.deploy import demos, trained
from gpurobot.deploy.policy import Policy
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError, algorithm_settings
from tests.gpurobot import toy

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", demos.names())
def test_a_demo_is_small_and_acts(name):
  path = demos.find(name)
  assert path.stat().st_size < demos.MOST_BYTES
  config, saved = trained.read(str(path))
  assert config.task == name in tasks.available()
  assert config.run_dir is None
  policy = Policy(saved["learner"], algorithm_settings(config), 2, CPU)
  obs = {group: torch.zeros(2, width) for group, width in saved["learner"]["obs_dims"].items()}
  action = policy(obs, torch.ones(2, dtype=torch.bool))
  assert action.shape == (2, saved["learner"]["num_actions"])
  assert action.isfinite().all()


def test_a_demo_stands_for_a_checkpoint(tmp_path):
  assert len(demos.names()) == 8
  with warnings.catch_warnings():
    warnings.simplefilter("error")  # it has no names, and is of the task as it is
    evaluate.main(["demo=cartpole", "episodes=8", f"json={tmp_path / 'figures.json'}"])
  assert json.loads((tmp_path / "figures.json").read_text())["own"]["return"]["value"] > 490


def test_a_demo_has_the_policy_of_the_run_and_nothing_of_its_training(tmp_path, monkeypatch):
  train.main([f"task={toy.__file__}", f"run_dir={tmp_path / 'run'}", "max_iterations=1"])
  content = checkpoint.read(tmp_path / "run")
  content["config"]["task"] = "toy"
  path = demos.write(content, tmp_path / "demos")
  found = checkpoint.read(path)
  assert path == tmp_path / "demos" / "toy.pt"
  assert set(found["learner"]) == set(demos.OF_A_POLICY) - {"names"}  # a toy has none
  kept, before = (each["learner"]["network"] for each in (found, content))
  assert kept.keys() == before.keys()
  for name, weight in before.items():
    rounded = name.startswith("critic.")  # it does not act
    assert torch.equal(kept[name], weight.bfloat16().to(weight.dtype) if rounded else weight)
  assert any(name.startswith("critic.") for name in before)
  assert str(tmp_path) not in str(found["config"])
  monkeypatch.setattr(demos, "MOST_BYTES", 100)
  with pytest.raises(ValueError, match="takes more than 100 bytes"):
    demos.write(content, tmp_path)
  assert not (tmp_path / "toy.pt").exists()


def test_a_name_that_is_no_demo_gets_the_nearest():
  with pytest.raises(ConfigError, match=r"^there is no demo 'cartpol'; the nearest is 'cartpole'$"):
    demos.find("cartpol")


def test_a_demo_is_exported_where_the_user_is(tmp_path, monkeypatch):
  """Not beside its file, which may be in a folder of the system."""
  monkeypatch.chdir(tmp_path)
  export.main(["demo=cartpole"])
  assert (tmp_path / "export" / "policy.onnx").exists()
  assert not (demos.FOLDER / "export").exists()
