"""Gymnasium's environments are stepped as they are."""

import gymnasium
import numpy as np
import pytest
import torch

from gpurobot.deploy.gymnasium_env import GymnasiumEnv


def test_episodes_are_those_of_the_environments_alone():
  together = GymnasiumEnv("gym/Hopper-v5", 2, seed=3)
  alone = [gymnasium.make("Hopper-v5") for _ in range(2)]
  obs = together.reset()["policy"]
  for index, env in enumerate(alone):
    np.testing.assert_allclose(obs[index], env.reset(seed=3 + index)[0], rtol=1e-6)
  generator, ends = torch.Generator().manual_seed(0), 0
  for _ in range(100):
    action = 2.4 * torch.rand(2, 3, generator=generator) - 1.2  # beyond +-1, which is clipped
    step = together.step(action)
    for index, env in enumerate(alone):
      final, reward, terminated, _, info = env.step(action[index].clamp(-1, 1).numpy())
      np.testing.assert_allclose(step["final_obs", "policy"][index], final, rtol=1e-5, atol=1e-6)
      assert step["reward"][index].item() == pytest.approx(reward, rel=1e-5)
      assert step["metrics", "x_velocity"][index].item() == pytest.approx(info["x_velocity"], rel=1e-5)
      assert step["terminated"][index] == terminated
      obs = env.reset()[0] if terminated else final
      np.testing.assert_allclose(step["obs", "policy"][index], obs, rtol=1e-5, atol=1e-6)
      ends += terminated
  assert ends > 4
  assert step["valid"].all()


def test_actions_cover_the_control_range():
  env = GymnasiumEnv("gym/InvertedPendulum-v5", 3, seed=0)
  env.reset()
  env.step(torch.tensor([[-1.0], [0.5], [1.0]]))
  assert [one.unwrapped.data.ctrl[0] for one in env._envs.envs] == [-3.0, 1.5, 3.0]


def test_the_time_limit_strikes_everywhere_at_once():
  env = GymnasiumEnv("gym/Reacher-v5", 2, seed=0)
  first = env.reset()["policy"]
  for time in range(1, 51):
    step = env.step(torch.zeros(2, 2))
    assert step["truncated"].tolist() == [time == 50] * 2
    assert not step["terminated"].any()
  assert not step["obs", "policy"].equal(step["final_obs", "policy"])
  assert env.reset()["policy"].equal(first)


@pytest.mark.parametrize(("task", "words"), [("ant", "of the tasks gym/*"), ("gym/Ant-v99", "Ant-v99|v99")])
def test_what_gymnasium_does_not_have_is_told(task, words):
  with pytest.raises(ValueError, match=words) as caught:
    GymnasiumEnv(task, 2, seed=0)
  assert "\n" not in str(caught.value)
