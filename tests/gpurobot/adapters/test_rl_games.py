import pytest
import torch

pytest.importorskip("rl_games", reason="comes with the extra 'libraries'")
from rl_games.common import vecenv

from gpurobot.adapters import rl_games
from tests.gpurobot import toy, toy_choices


def make(task, **settings):
  rl_games.register()
  return vecenv.create_vec_env(rl_games.NAME, 3, task=task.__file__, **settings)


def test_groups_and_ends():
  env = make(toy, training=False, episode_steps=2)
  assert {name: group.shape for name, group in env.reset().items()} == {"obs": (3, 2), "states": (3, 3)}
  env.step(torch.zeros(3, 2))
  obs, reward, done, infos = env.step(torch.zeros(3, 2))
  assert obs["obs"].shape == (3, 2)
  assert reward.shape == (3,)
  assert done.all()
  assert infos["time_outs"].all()


def test_spaces():
  info = make(toy).get_env_info()
  assert info["observation_space"].shape == (2,)
  assert info["state_space"].shape == (3,)
  assert info["action_space"].shape == (2,)
  assert [int(space.n) for space in make(toy_choices).get_env_info()["action_space"]] == [3, 2]


def test_a_seed_in_the_configuration():
  first, same, other = (make(toy, seed=seed).reset()["obs"] for seed in (1, 1, 2))
  assert torch.equal(first, same)
  assert not torch.equal(first, other)
