"""The examples that train by other libraries learn to balance the pole of Cartpole for a while."""

import importlib

import pytest

UNTRAINED = 30.0  # mean return beyond any that a new policy's random actions come to
SIZES = {"num_envs": 128, "steps": 40_960, "seed": 0}


@pytest.mark.parametrize("name", ["cleanrl", "stable_baselines3", "torchrl", "rl_games", "rsl_rl"])
def test_cartpole_is_balanced(name, tmp_path):
  if name != "cleanrl":
    pytest.importorskip(name, reason="comes with the extra 'libraries'")
  settings = {"env_id": "gpurobot/Cartpole-v0"} if name == "cleanrl" else {"task": "cartpole"}
  if name in ("rl_games", "rsl_rl"):
    settings["folder"] = str(tmp_path)
  assert importlib.import_module(f"examples.ppo_{name}").train(**SIZES, **settings) > UNTRAINED
