"""Networks and losses of the user's own: that they train, and how mistakes in them end."""

import re

import numpy as np
import pytest
import torch

import gpurobot
from gpurobot import api, export
from gpurobot.deploy import exported
from gpurobot.run.checkpoint import CheckpointError
from gpurobot.settings.config import ConfigError
from tasks.core.errors import TaskError
from tests.gpurobot import own_code, toy

TOY, FILE = str(toy.__file__), str(own_code.__file__)
SETTINGS = {"num_envs": 32, "log_every": 1}
OFF_POLICY = {"learning_starts": 4, "batch_size": 32, "buffer_size": 10_000}
OBS = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)


def trained(folder, iterations=3, **settings) -> api.Run:
  return gpurobot.train(TOY, run_dir=folder, max_iterations=iterations, **SETTINGS, **settings)


# The usual critics of SAC and TD3 are one product of both, and those of one's own network are two.
@pytest.mark.parametrize(("algorithm", "settings", "rounding"), [
  ("ppo", {"recurrent": "lstm", "recurrent_units": 8}, 0.0),
  ("sac", {**OFF_POLICY, "layer_norm": False, "precision": "float64"}, 1e-6),
  ("td3", {**OFF_POLICY, "layer_norm": False, "precision": "float64"}, 1e-6),
])  # fmt: skip
def test_the_usual_layers_as_ones_own_train_the_same_policy(algorithm, settings, rounding, tmp_path):
  given = {"algorithm": algorithm, algorithm: settings}
  usual = trained(tmp_path / "usual", **given)
  own = trained(tmp_path / "own", **given | {algorithm: {**settings, "network": own_code.layers}})
  assert own.config[f"{algorithm}.network"] == "tests.gpurobot.own_code:layers"
  np.testing.assert_allclose(own.policy(OBS), usual.policy(OBS), rtol=0.0, atol=rounding)


def test_another_network_resumes_and_is_exported(tmp_path):
  own = {"network": own_code.Residual, "hidden": [6]}
  whole = trained(tmp_path / "whole", 4, ppo=own)
  half = trained(tmp_path / "half", 2, ppo=own)
  more = gpurobot.train(resume=half.folder, max_iterations=4, task=TOY, ppo=own)
  assert np.array_equal(more.policy(OBS), whole.policy(OBS))
  assert np.array_equal(gpurobot.load(half.folder, TOY, own_code.Residual).policy(OBS), whole.policy(OBS))
  network = f"network={FILE}:Residual"
  export.main([f"checkpoint={half.folder}", f"task={TOY}", network])
  for name in ("policy.onnx", "policy.pt"):
    act = exported.Exported(half.folder / "export" / name, len(OBS))
    actions = act({"policy": torch.as_tensor(OBS)}, torch.zeros(len(OBS), dtype=torch.bool))
    np.testing.assert_allclose(actions, np.clip(whole.policy(OBS), -1, 1), atol=1e-5)


@pytest.mark.parametrize(("algorithm", "settings"), [("ppo", {}), ("td3", OFF_POLICY)])
def test_a_loss_that_changes_nothing_trains_the_same_policy(algorithm, settings, tmp_path):
  given = {"algorithm": algorithm, algorithm: settings}
  usual = trained(tmp_path / "usual", **given)
  own = trained(tmp_path / "own", **given | {algorithm: {**settings, "loss": own_code.unchanged}})
  assert own.config[f"{algorithm}.loss"] == "tests.gpurobot.own_code:unchanged"
  assert np.array_equal(own.policy(OBS), usual.policy(OBS))


def test_the_terms_of_ones_own_loss_are_in_the_log(tmp_path):
  found = trained(tmp_path / "own", 2, ppo={"loss": own_code.unchanged, "critic_coef": 0.5}).metrics
  assert "own_loss/policy" not in trained(tmp_path / "usual", 1).metrics
  for name, weight in (("policy", 1.0), ("value", 0.5)):
    np.testing.assert_allclose(found[f"own_loss/{name}"], weight * found[f"{name}_loss"], rtol=1e-5)
  assert "own_loss/size" in trained(tmp_path / "more", 1, ppo={"loss": own_code.plain_gradient}).metrics


def test_another_loss_is_minimised(tmp_path):
  small = trained(tmp_path / "small", 30, ppo={"loss": own_code.plain_gradient, "lr": 3e-3})
  usual = trained(tmp_path / "usual", 30, ppo={"lr": 3e-3})
  assert np.abs(small.policy(OBS)).mean() < 0.5 * np.abs(usual.policy(OBS)).mean()


def test_an_off_policy_algorithm_can_imitate(tmp_path):
  """The first actions are random, and the policy that only imitates them is their mean, zero."""
  settings = {**OFF_POLICY, "lr": 3e-3, "loss": own_code.imitation, "learning_starts": 40}
  run = trained(tmp_path, 30, algorithm="sac", sac=settings)
  assert np.abs(run.policy(OBS)).mean() < 0.2
  found = run.metrics
  assert "own_loss/imitation" in found
  assert "own_loss/value" not in found


def test_an_off_policy_run_with_another_loss_resumes_and_needs_no_code_to_act(tmp_path):
  settings = {"algorithm": "td3", "td3": {**OFF_POLICY, "loss": own_code.imitation}}
  whole, half = (trained(tmp_path / str(count), count, **settings) for count in (4, 2))
  with pytest.raises(CheckpointError, match=r"has the setting td3\.loss, a file with code that runs: add "):
    gpurobot.train(resume=half.folder, task=TOY)
  more = gpurobot.train(resume=half.folder, max_iterations=4, task=TOY, td3={"loss": own_code.imitation})
  assert np.array_equal(more.policy(OBS), whole.policy(OBS))
  export.main([f"checkpoint={half.folder}", f"task={TOY}"])
  act = exported.Exported(half.folder / "export" / "policy.onnx", len(OBS))
  actions = act({"policy": torch.as_tensor(OBS)}, torch.zeros(len(OBS), dtype=torch.bool))
  np.testing.assert_allclose(actions, np.clip(gpurobot.load(half.folder, TOY).policy(OBS), -1, 1), atol=1e-5)


def test_a_mistake_in_a_loss_names_the_setting_of_its_algorithm(tmp_path):
  message = f"sac.loss={FILE}:mean: the term policy is []; return a number for each sample, [32]"
  with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
    trained(tmp_path, algorithm="sac", sac={**OFF_POLICY, "loss": f"{FILE}:mean"})
  with pytest.raises(ConfigError, match=r"^sac.loss has no effect with algorithm=ppo"):
    trained(tmp_path, sac={"loss": f"{FILE}:unchanged"})


MISTAKES = {
  "network": {
    "nowhere.py:Body": "network=nowhere.py: there is no such file in ",
    "my_network.py": "network=my_network.py is no reference; write network=<file.py or module>:<",
    f"{FILE}:Nothing": f"network={FILE}:Nothing: {FILE} has no Nothing",
    f"{FILE}:TEXT": f"network={FILE}:TEXT: TEXT is 'no function', and no function or class",
    f"{FILE}:number": f"network={FILE}:number returns 2; return a torch.nn.Module",
    f"{FILE}:Flat": f"network={FILE}:Flat: of an input [2, 2] it makes [4]; keep all dimensions but the last",
    f"{FILE}:dropout": f"network={FILE}:dropout has a Dropout, whose numbers a resumed run or another ",
  },
  "loss": {
    f"{FILE}:mean": f"ppo.loss={FILE}:mean: the term policy is []; return a number for each sample",
  },
}


@pytest.mark.parametrize(
  ("setting", "reference", "message"),
  [(setting, *case) for setting, cases in MISTAKES.items() for case in cases.items()],
)
def test_a_mistake_in_ones_own_code_is_named(setting, reference, message, tmp_path):
  with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
    trained(tmp_path, ppo={setting: reference})


@pytest.mark.parametrize(("setting", "name", "where"), [
  ("network", "Wide", "in forward: RuntimeError: mat1 and mat2"),
  ("loss", "missing", "in missing: KeyError: key"),
])  # fmt: skip
def test_an_error_in_ones_own_code_is_told_with_its_line(setting, name, where, tmp_path):
  with pytest.raises(TaskError, match=rf"own_code\.py, line \d+, {where}"):
    trained(tmp_path, ppo={setting: f"{FILE}:{name}"})


def test_a_function_without_a_name_cannot_be_handed_in(tmp_path):
  with pytest.raises(ConfigError, match=r"^ppo\.loss: .* has no name in a module; define it there"):
    trained(tmp_path, ppo={"loss": lambda terms, *_: terms})


def test_code_that_a_run_names_is_the_users_to_name(tmp_path):
  run = trained(tmp_path, 1, ppo={"network": own_code.Residual, "loss": own_code.unchanged})
  names = [f"tests.gpurobot.own_code:{name}" for name in ("unchanged", "Residual")]
  told = f"'{run.folder}' was trained with the network '{names[1]}', which runs code: add network={names[1]}"
  with pytest.raises(ConfigError, match=f"^{re.escape(told)}$"):
    _ = gpurobot.load(run.folder, TOY).policy
  told = f"'{run.folder}' has the setting ppo.loss and ppo.network, a file with code that runs: add "
  arguments = f"ppo.loss={names[0]} ppo.network={names[1]}"
  with pytest.raises(CheckpointError, match=f"^{re.escape(told + arguments)}$"):
    gpurobot.train(resume=run.folder, task=TOY)


def test_a_network_of_another_policy_is_refused(tmp_path):
  run = trained(tmp_path, 1)
  told = f"network={FILE}:Residual: '{run.folder}' was trained with hidden layers; leave network= out"
  with pytest.raises(ConfigError, match=f"^{re.escape(told)}$"):
    _ = gpurobot.load(run.folder, TOY, f"{FILE}:Residual").policy
