import math

import pytest
import torch

from gpurobot.algorithm_config import PPOConfig, RewardTransform
from gpurobot.config import assign, defaults
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.learn.reward import SIZE, RewardScaler
from tests.gpurobot import toy

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
    assert float(factor) == pytest.approx(expected / old, rel=1e-12)
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
    learner = PPO(env, config, World())
    for _ in range(3):
      learner.collect()
      learner.update()
    weights.append(learner.optimizer.weights.data.clone())
  torch.testing.assert_close(*weights, rtol=0, atol=1e-7)


def test_values_follow_the_scale():
  """A reward that grows a hundredfold leaves the values in the new unit what they were in rewards."""
  config = assign(defaults(toy), {"ppo.precision": "float64"})
  env = Sized(config.env, 32, random=Random(0, 32))
  learner = PPO(env, config, World())
  for _ in range(5):
    learner.collect()
    learner.update()
  env.size = 100.0
  learner.collect()
  samples, before = learner.rollout.samples, float(learner.rewards.scale)
  raw = learner.value_moments.denormalize(samples["value"]) / before
  learner._measure()
  learner._rescale()
  after = float(learner.rewards.scale)
  assert after < before / 10
  now = learner.value_moments.denormalize(samples["value"]) / after
  torch.testing.assert_close(now, raw, rtol=1e-9, atol=0)
