import copy
import math

import pytest
import torch

from gpurobot.device.distributed import World
from gpurobot.learn.critic import Bins
from gpurobot.learn.off_policy.sac import SAC
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.learn.reward import SIZE, RewardScaler
from gpurobot.settings.algorithms import PPOConfig, RewardTransform
from gpurobot.settings.config import assign, defaults
from tests.gpurobot import toy
from tests.gpurobot.learn.off_policy.test_base import make
from tests.gpurobot.learn.test_ppo import iterate

CPU = torch.device("cpu")


def scaler(scale: float | None = None, kind: RewardTransform = RewardTransform.symlog) -> RewardScaler:
  return RewardScaler(PPOConfig(reward_transform=kind, reward_scale=scale), CPU, torch.float64)


def rewards(seed: int = 0, size: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
  """Return rewards [8, 32] and which of them are valid."""
  generator = torch.Generator().manual_seed(seed)
  reward = size * (torch.randn(8, 32, generator=generator, dtype=torch.float64) + 2)
  return reward, torch.rand(8, 32, generator=generator) < 0.9


@pytest.mark.parametrize(("kind", "expected"), [
  (RewardTransform.symlog, [-math.log(2.5), 0.0, math.log(126.0)]),
  (RewardTransform.scale, [-1.5, 0.0, 125.0]),
  (RewardTransform.none, [-3.0, 0.0, 250.0]),
])  # fmt: skip
def test_rewards_are_transformed(kind, expected):
  reward = torch.tensor([-3.0, 0.0, 250.0], dtype=torch.float64)
  assert scaler(0.5, kind)(reward).tolist() == pytest.approx(expected, rel=1e-14)


def test_the_automatic_scale_is_of_all_valid_rewards_so_far():
  one, old = scaler(), 1.0
  batches = [rewards(seed, size) for seed, size in enumerate((500.0, 20.0))]
  for count in (1, 2):
    one.accumulate(*batches[count - 1])
    factor = one.merge()
    valid = torch.cat([reward[valid] for reward, valid in batches[:count]])
    expected = SIZE / float(valid.square().mean().sqrt())
    assert float(one.scale) == pytest.approx(expected, rel=1e-12)
    assert float(factor) == (pytest.approx(expected / old, rel=1e-12) if count > 1 else 1)
    old = expected


def test_rewards_of_zero_leave_the_scale():
  one = scaler()
  one.accumulate(torch.zeros(8, 32), torch.ones(8, 32, dtype=torch.bool))
  assert float(one.merge()) == float(one.scale) == 1


def test_an_outlier_moves_the_scale_little():
  """Without a bound it would be 30 times smaller."""
  one = scaler()
  for seed in range(100):
    reward, valid = rewards(seed)
    reward[0, 0] = 1e5 if seed == 50 else reward[0, 0]
    one.accumulate(reward, valid | (reward == 1e5))
    one.merge()
  assert float(one.scale) == pytest.approx(SIZE / math.sqrt(5), rel=0.1)


def test_the_scale_goes_on_from_a_saved_one():
  one, other, fixed = scaler(), scaler(), scaler(0.25)
  one.accumulate(*rewards())
  one.merge()
  for each in (other, fixed):
    each.load_state_dict(one.state_dict())
  assert float(fixed.scale) == 0.25
  for each in (one, other):
    each.accumulate(*rewards(1))
    each.merge()
  assert float(one.scale) == float(other.scale)


class Sized(toy.Task):
  """The toy with rewards of another size."""

  size = 1.0

  def step(self, action):
    result = super().step(action)
    return result.set("reward", result["reward"] * self.size)


@pytest.mark.parametrize("critic", ["scalar", "twohot"])
def test_the_size_of_rewards_changes_nothing(critic):
  weights = []
  for size in (1.0, 2.0**12):
    config = assign(defaults(toy), {"ppo.precision": "float64", "ppo.critic": critic})
    env = Sized(config.env, 32, random=Random(0, 32))
    env.size = size
    weights.append(iterate(PPO(env, config, World()), 3).optimizer.weights.data.clone())
  torch.testing.assert_close(*weights, rtol=0, atol=1e-7)


@pytest.mark.parametrize("critic", ["scalar", "twohot"])
def test_values_follow_the_scale(critic):
  """A reward that grows a hundredfold leaves the values in the new unit what they were in rewards."""
  config = assign(defaults(toy), {"ppo.precision": "float64", "ppo.critic": critic})
  env = Sized(config.env, 32, random=Random(0, 32))
  learner = iterate(PPO(env, config, World()), 5)
  env.size = 100.0
  learner.collect()
  samples, before = learner.rollout.samples, float(learner.rewards.scale)
  obs, state = samples["obs"][:1], learner.rollout.last_state

  def values() -> torch.Tensor:
    return learner.value_moments.denormalize(learner.network.evaluate(obs, state, samples["restart"][:1]))

  raw = values() / before
  learner._measure()
  learner._rescale()
  after = float(learner.rewards.scale)
  assert after < before / 10
  torch.testing.assert_close(values() / after, raw, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("name", "critic"), [("sac", "twohot"), ("sac", "scalar"), ("td3", "twohot")])
def test_values_off_policy_follow_the_scale(name, critic):
  """Rewards of 3 after as many of 1: of a root mean square of sqrt 5, the scale and all values fall by it."""
  one = iterate(make(name, critic=critic), 5)
  obs, action = one.batch.obs, one.batch.action
  before = [critics(obs, action).value for critics in (one.critics, one.targets)]
  alpha = one.alpha if isinstance(one, SAC) else None
  one.rewards.moments.pending.zero_()
  count = one.rewards.moments.count
  one.rewards.moments.mean.fill_(1)
  one.rewards.moments.m2.zero_()
  one.rewards.scale.fill_(SIZE)
  one.rewards.moments.pending[0] = count[0]
  one.rewards.moments.pending[1] = 2 * count[0]
  one.rewards.moments.pending[2] = 4 * count[0]
  one._merge()
  after = [critics(obs, action).value for critics in (one.critics, one.targets)]
  torch.testing.assert_close(after, [value / math.sqrt(5) for value in before])
  if alpha is not None:
    torch.testing.assert_close(one.alpha, alpha / math.sqrt(5))


def test_a_checkpoint_without_bins_has_those_of_a_new_critic():
  one = make(critic="twohot")
  saved = copy.deepcopy(one.policy_dict())
  for name in ("critics", "targets"):
    del saved[name]["head.bins.returns"]
  other = make(critic="twohot")
  other.load_policy(saved)
  assert torch.equal(other.critics.head.bins.returns, Bins().returns)
