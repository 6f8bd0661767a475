"""Known mistakes of PPO implementations that the test of no single file would notice.

Each test runs whole iterations and looks at what they leave.
"""

import pytest
import torch

from gpurobot.device.distributed import World
from gpurobot.learn import ppo
from gpurobot.learn.loss import SUMS, adapt
from gpurobot.learn.ppo import PPO
from tests.gpurobot.learn.test_ppo import iterate, learner


def record_steps(one: PPO) -> list:
  """Return a list to which each step of the environment adds what it has returned."""
  step, steps = one.env.step, []
  one.env.step = lambda action: steps.append(step(action)) or steps[-1]
  return steps


def record_minibatches(one: PPO) -> list[tuple[dict[str, float], float]]:
  """Return a list to which each optimiser step adds `loss`'s sums and the rate it takes, with graphs=off."""
  step, found = one.optimizer.step, []

  def record():
    found.append((dict(zip(SUMS, one.optimizer.sums.tolist(), strict=True)), float(one.optimizer.rate)))
    step()

  one.optimizer.step = record
  return found


def test_nothing_moves_between_rollout_and_first_minibatch():
  """Neither observation moments nor the policy: its ratios are 1, and only then do they leave 1."""
  one = iterate(learner(graphs="off"), 3)
  found = record_minibatches(one)
  iterate(one, 1)
  (first, _), (second, _) = found[:2]
  assert abs(first["kl"]) < 1e-12
  assert first["clipped"] == 0
  assert second["kl"] > 1e-6


def test_the_rate_moves_once_an_epoch_by_the_mean_divergence(monkeypatch):
  """Not by that of single minibatches, nor by the very first, which is 0; the target knows no scale."""
  one = learner(**{"ppo.reference_minibatch": 32, "ppo.kl_target": 1e-3, "graphs": "off"})
  assert one.scale == 2
  found, moves = record_minibatches(one), []

  def record(rate, kl, target, limits):
    moves.append((float(kl), target))
    return adapt(rate, kl, target, limits)

  monkeypatch.setattr(ppo, "adapt", record)
  iterate(one, 2)
  count = one.ppo.minibatches
  epochs = [found[start : start + count] for start in range(0, len(found), count)]
  for index, epoch in enumerate(epochs):
    first = int(index % one.ppo.epochs == 0)  # there the policy is still the rollout's
    parts = [sums for sums, _ in epoch[first:]]
    kl = sum(sums["kl"] for sums in parts) / sum(sums["weight"] for sums in parts)
    assert moves[index] == pytest.approx((kl, 1e-3), rel=1e-12)
  rates = [[rate for _, rate in epoch] for epoch in epochs]
  assert all(len(set(rate)) == 1 for rate in rates)
  assert len({rate[0] for rate in rates}) > 2


def test_the_weights_start_by_the_seed_alone():
  torch.manual_seed(1)
  one = learner()
  torch.rand(100)
  other, third = learner(), learner(seed=1)
  assert torch.equal(one.optimizer.weights, other.optimizer.weights)
  assert not torch.equal(one.optimizer.weights, third.optimizer.weights)


def test_an_update_leaves_the_memory_of_the_episodes_alone():
  """Bootstraps and minibatches run the network too."""
  one = iterate(learner(**{"ppo.recurrent": "lstm", "env.episode_steps": 5}), 1)
  one.collect()
  before = one.collector.state.clone()
  one.update()
  assert torch.equal(one.collector.state, before)
  assert (before != 0).any()


def test_rounding_of_products_is_a_setting_and_convolutions_repeat_their_bits(monkeypatch):
  monkeypatch.setattr(torch.backends.cudnn, "deterministic", False)
  found = []
  for tf32 in (True, False):
    learner(tf32=tf32)
    found.append((torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32))
  assert found == [("high", True), ("highest", False)]
  assert torch.backends.cudnn.deterministic


def test_the_return_told_is_the_raw_one():
  """Neither scaled nor squashed, and of whole episodes across rollouts: the first began at some age."""
  words = {"ppo.reward_transform": "symlog", "ppo.reward_scale": 0.01, "graphs": "off"}
  one = learner(**words)
  steps = record_steps(one)
  iterate(one, 6)
  ended, sums, running = 0, torch.zeros(2, dtype=torch.float64), torch.full((2, 32), torch.nan)
  for step in steps:
    running += torch.stack([step["reward"], torch.ones(32)])
    over = step["terminated"] | step["truncated"]
    counted = over & ~running[0].isnan()
    sums += running[:, counted].sum(1)
    ended += int(counted.sum())
    running[:, over] = 0
  told = one.report()
  assert ended == float(told["episodes"]) > 32
  assert [float(told["return"]), float(told["length"])] == pytest.approx((sums / ended).tolist(), rel=1e-5)


def test_collectives_do_not_depend_on_the_data(monkeypatch):
  """A rank whose samples are all invalid takes part in as many as the others."""
  counts = []
  for limit in (9.0, -9.0):  # every transition is finite; none is
    world = World(size=2)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda *_, **__: None)
    monkeypatch.setattr(torch.distributed, "broadcast", lambda *_, **__: None)
    one = learner(world, **{"env.finite_below": limit})
    iterate(one, 2)
    one.report()
    counts.append(world.collectives)
    assert all(torch.isfinite(parameter).all() for parameter in one.network.parameters())
  assert counts[0] == counts[1] > 0
