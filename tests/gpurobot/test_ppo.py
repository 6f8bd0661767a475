import math

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from gpurobot.checkpoint import plain
from gpurobot.config import Config, assign, defaults
from gpurobot.distributed import World
from gpurobot.network import Gaussian
from gpurobot.ppo import SUMS, Learner, adapt, loss, rate_scale
from gpurobot.random import Random
from tests.gpurobot import toy


def reference_loss(policy, value, batch, old_log_std, ppo):
  """The same objective, sample by sample, from the definitions."""
  log_std = policy.log_std.detach().numpy()
  sums = dict.fromkeys(("objective", *SUMS), 0.0)
  for i, w in enumerate(batch["weight"].tolist()):
    mean, action = policy.mean[i].detach().numpy(), batch["action"][i].numpy()
    z = (action - mean) / np.exp(log_std)
    log_prob = sum(-0.5 * zj**2 - s - 0.5 * math.log(2 * math.pi) for zj, s in zip(z, log_std, strict=True))
    ratio = math.exp(log_prob - float(batch["log_prob"][i]))
    near = min(max(ratio, 1 - ppo.clip), 1 + ppo.clip)
    advantage = float(batch["advantage"][i])
    v, old_v, return_ = float(value[i]), float(batch["value"][i]), float(batch["return_"][i])
    clipped_v = old_v + min(max(v - old_v, -ppo.value_clip), ppo.value_clip)
    parts = {
      "weight": 1.0,
      "policy_loss": -min(ratio * advantage, near * advantage),
      "value_loss": 0.5 * max((v - return_) ** 2, (clipped_v - return_) ** 2),
      "bounds_loss": sum(max(abs(m) - 1.1, 0) ** 2 for m in mean),
      "kl": sum(
        s - o + (math.exp(2 * o) + (a - m) ** 2) / (2 * math.exp(2 * s)) - 0.5
        for s, o, a, m in zip(log_std, old_log_std.tolist(), batch["mean"][i].tolist(), mean, strict=True)
      ),
      "clipped": float(ratio != near),
    }
    entropy = sum(s + 0.5 * math.log(2 * math.pi * math.e) for s in log_std)
    objective = parts["policy_loss"] + ppo.critic_coef * parts["value_loss"]
    objective += ppo.bounds_coef * parts["bounds_loss"] - ppo.entropy_coef * entropy
    for name, part in (parts | {"objective": objective}).items():
      sums[name] += w * part
  return sums


def batch_of(n: int) -> tuple[Gaussian, torch.Tensor, TensorDict, torch.Tensor]:
  g = torch.Generator().manual_seed(0)

  def normal(*shape):
    return torch.randn(*shape, generator=g, dtype=torch.float64)

  old = Gaussian(normal(n, 2), 0.3 * normal(2))
  action = old.sample(normal(n, 2))
  batch = {"action": action, "mean": old.mean, "log_prob": old.log_prob(action), "value": normal(n)}
  batch |= {"advantage": normal(n), "return_": normal(n), "weight": (torch.arange(n) % 4 > 0).double()}
  policy = Gaussian((old.mean + 0.3 * normal(n, 2)).requires_grad_(), (old.log_std + 0.1).requires_grad_())
  return policy, normal(n), TensorDict(batch, [n]), old.log_std


def test_loss_against_the_definitions():
  policy, value, batch, old_log_std = batch_of(40)
  ppo = Config().ppo
  ppo.entropy_coef, ppo.bounds_coef = 0.05, 0.5
  objective, sums = loss((policy, value), batch, old_log_std, ppo)
  expected = reference_loss(policy, value, batch, old_log_std, ppo)
  found = dict(zip(SUMS, sums.tolist(), strict=True)) | {"objective": objective.item()}
  assert found == pytest.approx(expected, rel=1e-12)
  assert 0 < found["clipped"] < found["weight"] == 30


def test_the_gradient_stops_at_the_clip_and_at_invalid_samples():
  policy, value, batch, old_log_std = batch_of(40)
  ppo = Config().ppo
  ppo.bounds_coef = 0.0
  ratio = (policy.log_prob(batch["action"]) - batch["log_prob"]).exp().detach()
  loss((policy, value), batch, old_log_std, ppo)[0].backward()
  up, down = batch["advantage"] > 0, batch["advantage"] < 0
  stopped = (ratio > 1 + ppo.clip) & up | (ratio < 1 - ppo.clip) & down | (batch["weight"] == 0)
  assert 0 < int(stopped.sum()) < 40
  assert torch.equal(policy.mean.grad.abs().sum(1) == 0, stopped)


def test_the_learning_rate_follows_the_divergence():
  rate, limits = torch.tensor(1e-3), (1e-4, 1.2e-3)
  for kl, expected in ((0.01, 1e-3), (0.021, 1e-3 / 1.5), (0.019, 1e-3), (0.0049, 1.2e-3), (0.0051, 1e-3)):
    assert float(adapt(rate, torch.tensor(kl), 0.01, limits)) == pytest.approx(expected)
  assert float(adapt(torch.tensor(1.1e-4), torch.tensor(1.0), 0.01, limits)) == pytest.approx(1e-4)


def test_the_learning_rate_grows_as_the_root_of_the_minibatch():
  ppo = Config().ppo
  assert rate_scale(ppo, 4096) == 1.0
  assert rate_scale(ppo, 16384) == 2.0
  assert rate_scale(ppo, 1024) == 0.5


def learner(world: World | None = None, num_envs: int = 32, **values) -> Learner:
  values = {"ppo.precision": "float64", "num_envs": num_envs} | values
  config = assign(defaults(toy), values)
  env = toy.Task(config.env, num_envs, random=Random(0, num_envs))
  return Learner(env, config, world or World())


def iterate(learner: Learner, count: int) -> Learner:
  for _ in range(count):
    learner.collect()
    learner.update()
  return learner


def test_limits_of_the_rate_scale_with_it():
  scaled = learner(num_envs=256, **{"ppo.reference_minibatch": 64})
  scale = math.sqrt(256 * 8 / 2 / 64)
  assert float(scaled.rate) == pytest.approx(1e-3 * scale)
  assert scaled.rate_limits == pytest.approx((1e-6 * scale, 1e-2 * scale))


def test_the_rollout_is_the_present_policys():
  one = learner()
  iterate(one, 2)
  one.collect()
  samples = one.rollout.samples
  with torch.no_grad():
    policy, value = one.network(samples["obs"].flatten(0, 1))
  torch.testing.assert_close(policy.mean, samples["mean"].flatten(0, 1), rtol=1e-12, atol=1e-12)
  torch.testing.assert_close(value, samples["value"].flatten(), rtol=1e-12, atol=1e-12)
  log_prob = policy.log_prob(samples["action"].flatten(0, 1))
  torch.testing.assert_close(log_prob, samples["log_prob"].flatten(), rtol=1e-10, atol=1e-10)


def test_moments_stay_frozen_during_rollout_and_update():
  one = iterate(learner(), 1)
  before = one.observations.moments["policy"].mean.clone()
  one.collect()
  assert torch.equal(one.observations.moments["policy"].mean, before)
  one.update()
  moments = one.observations.moments["policy"]
  assert float(moments.count) == 2 * 32 * 8
  assert not torch.equal(moments.mean, before)


def test_returns_are_those_of_the_shaped_reward():
  one = learner(**{"ppo.reward_scale": 0.5, "ppo.reward_transform": "symlog"})
  one.collect()
  raw = -one.rollout.samples["obs", "policy"][1:].norm(dim=-1)  # moments are 0 and 1: observations are raw
  going_on = ~(one.rollout.samples["terminated"] | one.rollout.samples["truncated"])[:-1]
  expected = -torch.log1p(0.5 * raw.abs())
  torch.testing.assert_close(
    one.rollout.samples["reward"][:-1][going_on], expected[going_on], rtol=1e-6, atol=1e-7
  )


def test_a_failing_simulation_leaves_no_trace():
  one = iterate(learner(**{"env.finite_below": 0.9}), 3)
  assert not one.rollout.samples["valid"].all()
  assert all(torch.isfinite(parameter).all() for parameter in one.network.parameters())
  report = one.report()
  valid = float(one.value_moments.count)
  assert 0 < valid < 3 * 32 * 8
  assert math.isfinite(float(report["return"]))


def test_advantages_have_unit_moments_over_valid_samples():
  one = learner(**{"env.finite_below": 0.9})
  one.collect()
  batch, _ = one._batch()
  valid = batch["weight"] > 0
  x = batch["advantage"][valid]
  assert float(x.mean()) == pytest.approx(0, abs=1e-12)
  assert float(x.std(correction=0)) == pytest.approx(1, rel=1e-6)


def test_training_improves_the_return():
  one = iterate(learner(num_envs=64, **{"ppo.precision": "float32"}), 4)
  first = float(one.report()["return"])
  iterate(one, 26)
  one.report()
  iterate(one, 4)
  assert float(one.report()["return"]) > 0.5 * first  # returns are negative


def test_another_number_of_ranks_does_not_fit():
  state = learner().state_dict()
  state["ranks"] = [state["ranks"][0]] * 2
  with pytest.raises(ValueError, match=r"^it is of 2 rank\(s\), not 1$"):
    learner().load_state_dict(state)


def test_a_restored_learner_goes_on_with_the_same_numbers():
  one = iterate(learner(), 2)
  state = plain(one.state_dict())
  other = iterate(learner(), 3)
  other.load_state_dict(state)
  iterate(one, 2)
  iterate(other, 2)
  assert torch.equal(one.memory.weights, other.memory.weights)
  assert float(one.rate) == float(other.rate)
  assert other.iteration == 4
