from types import SimpleNamespace

import pytest
import torch

from gpurobot.learn.rnd import DECAY, Distillation, NoveltyReward, columns
from gpurobot.settings.algorithms import RNDConfig
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.learn.test_ppo import learner as any_learner

ON = {"ppo.rnd.weight": 1.0, "ppo.rnd.hidden": [32], "ppo.rnd.outputs": 8}


def learner(**values):
  return any_learner(**ON | values)


def novelty(one) -> NoveltyReward:
  (found,) = one.reward_sum.rewards
  assert isinstance(found, NoveltyReward)
  return found


def test_the_error_falls_where_the_policy_was_and_not_elsewhere():
  one = learner(**{"ppo.rnd.lr": 3e-3, "ppo.rnd.hidden": [64, 64], "ppo.normalize_obs": False})
  network = novelty(one).network
  near, far = (torch.randn(200, 2, dtype=torch.float64) * 0.4 + shift for shift in (0.0, 4.0))
  before = [float(network(x).mean()) for x in (near, far)]
  iterate(one, 30)
  after = [float(network(x).mean()) for x in (near, far)]
  assert after[0] < 0.05 * before[0]
  assert after[1] > before[1]


def test_the_target_stays_as_it_is():
  one = learner()
  network = novelty(one).network
  target, predictor = ([p.clone() for p in part.parameters()] for part in (network.target, network.predictor))
  iterate(one, 3)
  assert all(map(torch.equal, target, network.target.parameters()))
  assert not any(map(torch.equal, predictor, network.predictor.parameters()))


def test_the_error_by_hand():
  network = Distillation(3, RNDConfig(hidden=[4], outputs=5)).double()
  x = torch.randn(6, 3, dtype=torch.float64)
  expected = ((network.predictor(x) - network.target(x)) ** 2).sum(1) / 5
  torch.testing.assert_close(network(x), expected)


def test_rewards_are_errors_in_their_standard_deviation_of_late():
  """The first rollout has no reward, as it has no deviation. Mean and variance are weighted by age."""
  one, errors = learner(), []
  found = novelty(one)
  for iteration in range(3):
    one.collect()
    with torch.no_grad():
      errors.append(found.network(one.rollout.samples["obs", "policy"]))
      rewards = found.reward()
    found.moments.forget()
    if iteration:
      weights = [DECAY**age for age in reversed(range(iteration))]
      weights = [weight / sum(weights) for weight in weights]
      mean, square = (
        sum(weight * (error**power).mean() for weight, error in zip(weights, errors, strict=False))
        for power in (1, 2)
      )
      deviation = (square - mean**2 + 1e-5 * mean**2).sqrt()
      torch.testing.assert_close(rewards, errors[-1] / deviation, rtol=1e-9, atol=0)
    else:
      assert not rewards.any()
    one.update()


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-12])
def test_rewards_keep_their_unit_however_small_the_errors_are(scale, monkeypatch):
  """Errors of 1 and 3 in equal numbers have the deviation 1: rewards are 1 and 3, at any scale."""
  one = learner()
  found = novelty(one)
  errors = (torch.tensor([1.0, 3.0]).repeat(8, 32)[:, : found.local_envs] * scale).double()
  monkeypatch.setattr(found, "network", lambda _obs: errors)
  for _ in range(3):
    one.collect()
    found.reward()
    found.merge()
  torch.testing.assert_close(found.reward(), errors / scale, rtol=1e-4, atol=0)


def test_errors_without_end_or_difference_have_finite_rewards(monkeypatch):
  one = learner()
  found = novelty(one)
  one.collect()
  for error in (0.0, 0.0, 1e-3, 1e-3):
    errors = torch.full((8, found.local_envs), error, dtype=torch.float64)
    monkeypatch.setattr(found, "network", lambda _obs, errors=errors: errors)
    rewards = found.reward()
    assert rewards.isfinite().all()
    found.merge()


def test_the_weight_decays():
  words = {"ppo.rnd.weight": 2.0, "ppo.rnd.weight_final": 0.5, "ppo.rnd.weight_steps": 1000}
  found = novelty(learner(**words))
  assert [found.weight(steps) for steps in (0, 500, 1000, 9000)] == [2.0, 1.25, 0.5, 0.5]


def test_an_unknown_group_is_named():
  message = "ppo.rnd.group=critc: the task has the observation groups policy, critic; the nearest is 'critic'"
  with pytest.raises(ConfigError, match=f"^{message}$"):
    learner(**{"ppo.rnd.group": "critc"})


def test_novelty_of_images_alone_is_refused():
  env = SimpleNamespace(obs_dims={"policy": 0, "critic": 4}, obs_names={})
  assert columns(RNDConfig(group="critic"), env) == [0, 1, 2, 3]
  with pytest.raises(ConfigError, match="this group has images alone"):
    columns(RNDConfig(group="policy"), env)


def test_blocks_choose_columns():
  env = SimpleNamespace(obs_dims={"policy": 4}, obs_names={"policy": ["arm", "arm", "cube", "opening"]})
  assert columns(RNDConfig(blocks=["opening", "arm"]), env) == [0, 1, 3]
  message = "ppo.rnd.blocks: the group policy has no block 'cub', but arm, cube, opening; the nearest is '"
  with pytest.raises(ConfigError, match=f"^{message}cube'$"):
    columns(RNDConfig(blocks=["arm", "cub"]), env)
  env.obs_names = {}
  with pytest.raises(ConfigError, match="has no block 'arm', but no names"):
    columns(RNDConfig(blocks=["arm"]), env)


def test_only_the_chosen_blocks_are_new(monkeypatch):
  monkeypatch.setattr(toy.Task, "obs_names", {"policy": ["x", "y"]}, raising=False)
  one = learner(**{"ppo.rnd.blocks": ["y"]})
  found = novelty(one)
  iterate(one, 2)
  one.collect()
  with torch.no_grad():
    rewards = found.reward()
    one.rollout.samples["obs", "policy"][..., 0] += 1.0
    torch.testing.assert_close(found.reward(), rewards, rtol=0, atol=0)
    one.rollout.samples["obs", "policy"][..., 1] += 1.0
    assert (found.reward() != rewards).any()
