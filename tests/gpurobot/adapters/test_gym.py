import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.passive_env_checker import env_render_passive_checker
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from gpurobot.adapters.gym import TaskEnv
from tests.gpurobot import toy, toy_choices
from tests.tasks import shaken_cartpole

TOY = {"id": "gpurobot/Task-v0", "task": toy.__file__}
SHAKEN = {"id": "gpurobot/Task-v0", "task": shaken_cartpole.__name__, "training": True}


@pytest.mark.parametrize(
  "settings",
  [{**TOY, "task": toy_choices.__file__}, SHAKEN, {"id": "gpurobot/Cartpole-v0"}],
  ids=["choices", "training", "physics"],
)
def test_gymnasium_s_checker_has_nothing_to_say_but_that_observations_have_no_bounds(settings):
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    check_env(gymnasium.make(**settings).unwrapped, skip_render_check=True)
  assert all("A Box observation space m" in str(warning.message) for warning in caught)


def drive(env, steps):
  obs, _ = env.reset(seed=7)
  kept = [obs]
  generator = np.random.default_rng(0)
  for _ in range(steps):
    action = generator.uniform(-1, 1, env.action_space.shape).astype(np.float32)
    kept.append(env.step(action))
  return kept


def test_one_environment_resets_itself_as_gymnasium_lets_it():
  """Gymnasium's own SAME_STEP around a single environment tells at each step what the batch of one tells."""
  own = gymnasium.make_vec(**SHAKEN, num_envs=1, episode_steps=7)
  single = SyncVectorEnv([lambda: gymnasium.make(**SHAKEN, episode_steps=7)], autoreset_mode="SameStep")
  first, *rest = zip(drive(own, 30), drive(single, 30), strict=True)
  np.testing.assert_array_equal(*first)
  ends = 0
  for ours, theirs in rest:
    for mine, other in zip(ours[:4], theirs[:4], strict=True):
      np.testing.assert_array_equal(mine, other)
    ended = bool(ours[2] | ours[3])
    ends += ended
    if ended:
      np.testing.assert_array_equal(ours[4]["final_obs"][0], theirs[4]["final_obs"][0])
      np.testing.assert_array_equal(ours[4]["_final_obs"], theirs[4]["_final_obs"])
    else:
      assert "final_obs" not in {*ours[4], *theirs[4]}
    same_entries(*(info["final_info"] if ended else info for info in (ours[4], theirs[4])))
  assert ends >= 3


def same_entries(ours, theirs):
  assert ours.keys() == theirs.keys()
  for name, value in theirs.items():
    np.testing.assert_array_equal(ours[name], value)


def test_metadata_and_spaces_are_a_vector_environment_s():
  env = gymnasium.make_vec(**TOY, num_envs=3)
  assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
  assert env.observation_space.shape == (3, 2)
  assert env.action_space == gymnasium.spaces.Box(-1, 1, (3, 2), np.float32)
  obs, info = env.reset(seed=0)
  assert obs in env.observation_space
  assert info == {}


def test_entries_tell_where_they_are_meant():
  env = gymnasium.make_vec(**TOY, num_envs=64, episode_steps=50)
  env.reset(seed=0)
  for _ in range(9):
    _, _, terminated, truncated, info = env.step(np.ones((64, 2), np.float32))
    if (terminated | truncated).any():
      break
  ended = terminated | truncated
  assert 0 < ended.sum() < 64
  np.testing.assert_array_equal(info["_reward_distance"], ~ended)
  np.testing.assert_array_equal(info["final_info"]["_reward_distance"], ended)
  assert (info["reward_distance"][ended] == 0).all()
  assert (info["final_info"]["reward_distance"][ended] < -3).all()
  assert [last is not None for last in info["final_obs"]] == ended.tolist()


def test_gymnasium_s_statistics_count_the_rewards():
  env = RecordEpisodeStatistics(gymnasium.make_vec(**TOY, num_envs=2, episode_steps=4))
  env.reset(seed=0)
  steps = [env.step(np.zeros((2, 2), np.float32)) for _ in range(4)]
  np.testing.assert_allclose(steps[-1][4]["episode"]["r"], sum(step[1] for step in steps), rtol=1e-6)


def test_tensors_hold_the_same_numbers():
  arrays, tensors = (
    gymnasium.make_vec(**TOY, num_envs=4, episode_steps=6, output=output) for output in ("numpy", "torch")
  )
  for ours, theirs in zip(drive(tensors, 8)[1:], drive(arrays, 8)[1:], strict=True):
    for tensor, array in zip(ours[:4], theirs[:4], strict=True):
      assert isinstance(tensor, torch.Tensor)
      np.testing.assert_array_equal(tensor, array)
    ended = theirs[2] | theirs[3]
    np.testing.assert_array_equal(ours[4]["_final_obs"], ended)
    for index in np.flatnonzero(ended):
      np.testing.assert_array_equal(ours[4]["final_obs"][index], theirs[4]["final_obs"][index])


def test_without_a_seed_no_two_are_alike():
  first, second = (gymnasium.make_vec(**TOY, num_envs=2).reset()[0] for _ in range(2))
  assert not np.array_equal(first, second)
  env = gymnasium.make(**TOY)  # a reset within an episode begins another one
  start, _ = env.reset(seed=0)
  env.step(np.zeros(2, np.float32))
  assert not np.array_equal(env.reset()[0], start)


def test_pictures(drawing):
  """Gymnasium's checker looks at shape and type too."""
  env = gymnasium.make("gpurobot/Cartpole-v0", render_mode="rgb_array").unwrapped
  env.reset(seed=0)
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    env_render_passive_checker(env)
  assert caught == []
  before = env.render()
  env.step(np.ones(1, np.float32))
  assert not np.array_equal(env.render(), before)
  env.close()


def test_what_no_environment_has_is_refused():
  for env in (gymnasium.make(**TOY), gymnasium.make_vec(**TOY)):
    with pytest.raises(ValueError, match=r"options=.*no options"):
      env.reset(options={"level": 1})
  with pytest.raises(ValueError, match="output=jax: write one of numpy, torch"):
    gymnasium.make_vec(**TOY, output="jax")
  with pytest.raises(ValueError, match="render_mode"):
    gymnasium.make(**TOY).unwrapped.render()
  with pytest.raises(ValueError, match="only 'rgb_array'"):
    TaskEnv(task=toy.__file__, render_mode="ansi")
