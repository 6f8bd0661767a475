import json
import re
import sys

import numpy as np
import onnxruntime
import pytest
import torch

import train
from gpurobot import export
from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.exported import KEY, NAMES
from gpurobot.deploy.header import HEADER
from tasks import quadruped
from tests.gpurobot import policies, toy_pixels
from tests.mistakes.told import told
from tests.tasks import in_mujoco

WORDS = ["task=cartpole", "num_envs=64", "max_iterations=1", "ppo.recurrent=gru", "env.see_velocity=false"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  train.main([*WORDS, "ppo.precision=bf16", f"run_dir={folder}"])
  return folder


def test_a_policy_is_taken_along(folder, capsys):
  export.main([f"checkpoint={folder}"])
  printed = capsys.readouterr().out
  assert (
    f"{folder}/export/policy.onnx: outputs action, ctrl, next_state; actions differ by at most " in printed
  )
  assert "the state: pass next_state back as state" in printed
  assert "trained in bf16 and exported in float32: actions differ by at most " in printed
  assert {path.name for path in (folder / "export").iterdir()} == {*NAMES, HEADER, export.ROBOT}

  session = onnxruntime.InferenceSession(folder / "export" / NAMES[0])
  facts = json.loads(session.get_modelmeta().custom_metadata_map[KEY])
  assert facts == json.loads((folder / "export" / NAMES[2]).read_text())
  assert facts["control"]["gain"] == [[1.0]]
  assert facts["observation"]["blocks"] == [{"name": "position", "start": 0, "width": 2}]
  example = facts["example"]
  found = session.run(list(facts["outputs"]), {name: [example[name]] for name in facts["inputs"]})
  for name, value in zip(facts["outputs"], found, strict=True):
    assert value[0] == pytest.approx(example[name], abs=1e-6)


@torch.no_grad()
def test_filtered_actions_and_late_ones_are_taken_along():
  """The exported controls are the simulation's, which arrive some steps later."""
  env = in_mujoco.build(quadruped, export.ENVS, action_lowpass=5.0, action_rate=8.0, action_delay=0.045)
  controls = export._find_controls(env)
  torch.testing.assert_close(controls.gain, 0.5 * torch.eye(12))
  torch.testing.assert_close(controls.offset, env.stance)
  deployed = Deployed(policies.make(env.obs_dims, 12), controls, env.action_filter())
  obs, state, sent = env.reset()["policy"], torch.zeros(export.ENVS, 12), []
  for _ in range(12):
    action, ctrl, state = deployed(obs, state)
    sent.append(ctrl)
    obs = env.step(action)["obs", "policy"]
  torch.testing.assert_close(env.sim.ctrl.float(), sent[-3])  # 45 ms, in the last of four physics steps
  assert (sent[-3] - sent[-2]).abs().max() > 0.01


def test_an_off_policy_policy_is_taken_along(tmp_path, capsys):
  small = ("batch_size=64", "buffer_size=1024", "hidden=[8]", "critic_hidden=[8]", "learning_starts=4")
  words = ["algorithm=sac", *(f"sac.{word}" for word in small), "max_iterations=2"]
  train.main(["task=cartpole", "num_envs=64", *words, f"run_dir={tmp_path}"])
  export.main([f"checkpoint={tmp_path}"])
  assert "actions differ by at most " in capsys.readouterr().out
  session = onnxruntime.InferenceSession(tmp_path / "export" / NAMES[0])
  example = json.loads((tmp_path / "export" / NAMES[2]).read_text())["example"]
  (name,) = (known.name for known in session.get_inputs())
  (action,) = session.run(["action"], {name: [example[name]]})
  assert action[0] == pytest.approx(example["action"], abs=1e-6)
  assert abs(action).max() < 1


def test_a_policy_that_sees_is_taken_along_with_the_preparation_of_its_images(tmp_path, capsys):
  task = f"task={toy_pixels.__file__}"
  train.main([task, "max_iterations=1", "ppo.recurrent=gru", f"run_dir={tmp_path}"])
  (tmp_path / "export").mkdir()
  (tmp_path / "export" / HEADER).write_text("of an earlier export")
  export.main([f"checkpoint={tmp_path}", task])
  printed = capsys.readouterr().out
  assert "actions differ by at most " in printed
  assert (
    "policy.hpp: not written: C++ cannot express the image 'view'; use policy.onnx or policy.pt" in printed
  )
  assert not (tmp_path / "export" / HEADER).exists()
  session = onnxruntime.InferenceSession(tmp_path / "export" / NAMES[0])
  facts = json.loads(session.get_modelmeta().custom_metadata_map[KEY])
  assert [known.name for known in session.get_inputs()][:2] == ["view", "depth"]  # "obs" has no numbers
  assert facts["inputs"]["view"]["type"] == "uint8"
  assert facts["inputs"]["depth"]["shape"] == [20, 20, 1]
  example = {name: np.array([values], np.float32) for name, values in facts["example"].items()}
  inputs = {name: example[name] for name in facts["inputs"]}
  inputs["view"] = inputs["view"].astype(np.uint8)
  assert session.run(["action"], inputs)[0] == pytest.approx(example["action"], abs=1e-5)
  far = inputs | {"depth": np.full((1, 20, 20, 1), np.inf, np.float32)}
  end = inputs | {"depth": np.full((1, 20, 20, 1), 4.0, np.float32)}
  assert session.run(["action"], far)[0] == pytest.approx(session.run(["action"], end)[0], abs=1e-6)


def test_a_file_that_acts_otherwise_is_not_written(folder, tmp_path, capsys, monkeypatch):
  def other(*_):
    return lambda obs, _restart: obs["policy"][:, :1] + 9

  monkeypatch.setattr(export, "write", lambda *_: None)
  monkeypatch.setattr(export, "Exported", other)
  line = told(capsys, export.main, [f"checkpoint={folder}", f"folder={tmp_path}"])
  assert re.search(r"policy.onnx: its actions differ by \S+ from the policy's, more than 1e-05", line)
  assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named(folder, capsys, monkeypatch):
  monkeypatch.setitem(sys.modules, "onnxruntime", None)
  line = told(capsys, export.main, [f"checkpoint={folder}"])
  assert line == "onnxruntime is missing: pip install 'gpurobot[export]'"
