import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="comes with the extra 'libraries'")
from stable_baselines3.common.vec_env import VecMonitor

from gpurobot.adapters.stable_baselines3 import StableBaselinesEnv
from tests.gpurobot import toy
from tests.tasks import shaken_cartpole


def test_the_end_of_an_episode_is_told():
  env = StableBaselinesEnv(shaken_cartpole.__name__, 2, training=False, episode_steps=3)
  env.seed(0)
  env.reset()
  *_, (obs, _, ended, infos) = [env.step(np.zeros((2, 1), np.float32)) for _ in range(3)]
  assert ended.all()
  assert infos[0]["TimeLimit.truncated"] is True
  assert infos[0]["is_success"] is True
  assert infos[0]["terminal_observation"].shape == obs[0].shape
  assert not np.array_equal(infos[0]["terminal_observation"], obs[0])


def test_a_seed_is_for_the_next_reset_alone():
  env = StableBaselinesEnv(toy.__file__, 2)
  env.seed(3)
  first = env.reset()
  env.step(np.zeros((2, 2), np.float32))
  assert not np.array_equal(env.reset(), first)
  env.seed(3)
  np.testing.assert_array_equal(env.reset(), first)
  one, other = (StableBaselinesEnv(toy.__file__, 2).reset() for _ in range(2))
  assert not np.array_equal(one, other)


def test_its_monitor_counts_the_rewards():
  env = VecMonitor(StableBaselinesEnv(toy.__file__, 2, training=False, episode_steps=3))
  env.reset()
  steps = [env.step(np.zeros((2, 2), np.float32)) for _ in range(3)]
  total = float(sum(step[1][0] for step in steps))
  assert steps[-1][3][0]["episode"]["r"] == pytest.approx(total, abs=1e-5)


def test_attributes_are_of_all_environments():
  env = StableBaselinesEnv(toy.__file__, 3)
  assert env.get_attr("num_envs", indices=[0, 2]) == [3, 3]
  assert env.env_is_wrapped(VecMonitor, indices=1) == [False]
  env.set_attr("note", "x")
  assert env.get_attr("note") == ["x"] * 3
  assert len(env.env_method("get_attr", "note")) == 3
  with pytest.raises(ValueError, match="one batch"):
    env.set_attr("note", "y", indices=[1])
