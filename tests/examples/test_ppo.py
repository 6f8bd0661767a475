"""The examples that train by other libraries learn to balance the pole of Cartpole for a while."""

import importlib

import pytest

UNTRAINED = 30.0  # mean return beyond any that a new policy's random actions come to
SIZES = {"num_envs": 128, "steps": 40_960, "seed": 0}


def train(name, **settings):
  return importlib.import_module(f"examples.ppo_{name}").train(**SIZES, **settings)


def test_cleanrl():
  assert train("cleanrl", env_id="gpurobot/Cartpole-v0") > UNTRAINED


def test_stable_baselines3():
  pytest.importorskip("stable_baselines3", reason="comes with the extra 'libraries'")
  assert train("stable_baselines3", task="cartpole") > UNTRAINED


def test_torchrl():
  pytest.importorskip("torchrl", reason="comes with the extra 'libraries'")
  assert train("torchrl", task="cartpole") > UNTRAINED


@pytest.mark.parametrize("name", ["rl_games", "rsl_rl"])
def test_libraries_that_keep_a_folder(name, tmp_path):
  pytest.importorskip(name, reason="comes with the extra 'libraries'")
  assert train(name, task="cartpole", folder=str(tmp_path)) > UNTRAINED
