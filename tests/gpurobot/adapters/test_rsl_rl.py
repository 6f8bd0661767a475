import pytest
import torch

pytest.importorskip("rsl_rl", reason="comes with the extra 'libraries'")

from gpurobot.adapters.rsl_rl import RslRlEnv
from tests.gpurobot import toy, toy_choices
from tests.tasks import shaken_cartpole


def test_groups_ends_and_means():
  env = RslRlEnv(toy.__file__, 3, training=False, episode_steps=2)
  widths = {name: group.shape[1] for name, group in env.get_observations().items()}
  assert widths == {"policy": 2, "critic": 3}
  env.step(torch.zeros(3, 2))
  obs, reward, done, extras = env.step(torch.zeros(3, 2))
  assert torch.equal(env.get_observations()["policy"], obs["policy"])
  assert done.all()
  assert extras["time_outs"].all()
  assert extras["log"]["/reward_distance"] == pytest.approx(float(reward.mean()))


def test_the_steps_of_episodes_can_be_set():
  env = RslRlEnv(shaken_cartpole.__name__, 2, training=False)
  env.episode_length_buf = torch.tensor([3, env.max_episode_length - 1])
  _, _, done, _ = env.step(torch.zeros(2, 1))
  assert done.tolist() == [False, True]
  assert env.episode_length_buf.tolist() == [4, 0]


def test_choices_are_refused():
  with pytest.raises(ValueError, match="only continuous actions"):
    RslRlEnv(toy_choices.__file__, 1)
