import math

import pytest
import torch
from torch.distributions import (
  Categorical,
  Independent,
  Normal,
  TanhTransform,
  TransformedDistribution,
  kl_divergence,
)

from gpurobot.learn.distribution import Gaussian, MultiDiscrete, Squashed, action_head
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import PPOConfig
from gpurobot.settings.config import ConfigError

N, A, SIZES = 10, 3, (4, 2, 5)
FEATURES = torch.randn(6, 8)


def parameters(seed: int, state_std: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
  generator = torch.Generator().manual_seed(seed)
  mean = torch.randn(N, A, generator=generator, dtype=torch.float64)
  return mean, torch.randn(*([N] if state_std else []), A, generator=generator, dtype=torch.float64)


def logits(seed: int, n: int = N) -> torch.Tensor:
  return torch.randn(n, sum(SIZES), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal(mean, log_std) -> Independent:
  return Independent(Normal(mean, log_std.exp().expand_as(mean)), 1)


def close(own, theirs, tolerance=1e-12):
  torch.testing.assert_close(own.expand_as(theirs), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("state_std", [False, True])
def test_gaussian_agrees_with_torch(state_std):
  own, other = (Gaussian(*parameters(seed, state_std)) for seed in (0, 1))
  theirs, other_theirs = normal(own.mean, own.log_std), normal(other.mean, other.log_std)
  sample = own.sample(Random(0, N))
  close(own.log_prob(sample), theirs.log_prob(sample))
  close(own.entropy(), theirs.entropy())
  close(own.divergence(other), kl_divergence(theirs, other_theirs))
  assert torch.equal(own.action(sample), sample.float())
  close(own.spread(), theirs.stddev.mean())


@pytest.mark.parametrize("state_std", [False, True])
def test_squashed_agrees_with_torch(state_std):
  own, other = (Squashed(*parameters(seed, state_std)) for seed in (0, 1))
  tangent = TanhTransform(cache_size=1)  # which remembers the inverse
  theirs = TransformedDistribution(normal(own.mean, own.log_std), tangent)
  sample = own.sample(Random(0, N))
  close(own.log_prob(sample), theirs.log_prob(tangent(sample)))
  close(
    own.divergence(other), kl_divergence(normal(own.mean, own.log_std), normal(other.mean, other.log_std))
  )
  assert torch.equal(own.action(sample), sample.tanh().float())
  assert torch.equal(own.action(own.mode()), own.mean.tanh().float())


@pytest.mark.parametrize("kind", [Gaussian, Squashed])
def test_the_density_of_a_shift_is_that_of_its_sample(kind):
  """In its value and in its gradient."""
  mean, log_std = (part.requires_grad_() for part in parameters(0, state_std=True))
  noise = parameters(1)[0]
  policy = kind(mean, log_std)
  sample = policy.shift(noise)
  found, expected = policy.log_prob_of(noise, sample), policy.log_prob(sample)
  close(found, expected)
  for own, theirs in zip(
    torch.autograd.grad(found.sum(), [mean, log_std], retain_graph=True, materialize_grads=True),
    torch.autograd.grad(expected.sum(), [mean, log_std]),
    strict=True,
  ):
    close(own, theirs)


def test_the_squashed_density_is_finite_far_out():
  """At u = 30 the tangent is 1 in float32; its slope 4 exp(-2 u) is not 0."""
  policy = Squashed(torch.tensor([[30.0], [-30.0]], requires_grad=True), torch.zeros(1, requires_grad=True))
  log_prob = policy.log_prob(torch.tensor([[30.0], [-30.0]]))
  close(log_prob.detach(), torch.full((2,), -0.5 * math.log(2 * math.pi) + 60 - math.log(4)), 1e-6)
  (log_prob.sum() + policy.entropy().sum()).backward()
  assert torch.isfinite(policy.mean.grad).all()


@pytest.mark.parametrize(("std", "bound"), [(0.05, 1e-6), (1.0, 1e-4), (2.0, 5e-3)])
def test_the_squashed_entropy_is_the_integral_of_its_density(std, bound):
  log_std = torch.tensor([math.log(std)], dtype=torch.float64)
  for mean in (0.0, 0.7, 3.0):
    policy = Squashed(torch.tensor([mean], dtype=torch.float64), log_std)
    u = torch.linspace(mean - 10 * std, mean + 10 * std, 200_001, dtype=torch.float64).unsqueeze(-1)
    density = Gaussian(policy.mean, log_std).log_prob(u).exp()
    integral = torch.trapezoid(-density * policy.log_prob(u), u.squeeze(-1))
    assert float(policy.entropy()) == pytest.approx(float(integral), abs=bound)


def test_multi_discrete_agrees_with_torch():
  own, other = (MultiDiscrete(logits(seed), SIZES) for seed in (0, 1))
  theirs, other_theirs = ([Categorical(logits=part) for part in d.log_p] for d in (own, other))
  sample = own.sample(Random(0, N))
  assert sample.dtype == own.action(sample).dtype == torch.int64
  close(own.log_prob(sample), sum(d.log_prob(c) for d, c in zip(theirs, sample.unbind(-1), strict=True)))
  close(own.entropy(), sum(d.entropy() for d in theirs))
  close(own.divergence(other), sum(map(kl_divergence, theirs, other_theirs)))
  likeliest = [d.probs.argmax(-1) for d in theirs]
  assert torch.equal(own.mode(), torch.stack(likeliest, -1))


def test_samples_follow_their_distribution():
  """Moments of normals and frequencies of choices, five standard errors wide."""
  n = 20_000
  gaussian = Gaussian(torch.full((n, 2), 3.0), torch.tensor([0.0, -2.0]))
  sample = gaussian.sample(Random(0, n))
  std = gaussian.log_std.exp()
  assert (((sample.mean(0) - 3.0) / std).abs() < 5 / math.sqrt(n)).all()
  assert ((sample.std(0) / std - 1).abs() < 5 / math.sqrt(2 * n)).all()
  discrete = MultiDiscrete(logits(0, 1).expand(n, -1), SIZES)
  for choice, log_p in zip(discrete.sample(Random(1, n)).unbind(-1), discrete.log_p, strict=True):
    p = log_p[0].exp()
    error = (choice.bincount(minlength=len(p)) / n - p) / (p * (1 - p) / n).sqrt()
    assert (error.abs() < 5).all()


def test_what_is_impossible_is_not_chosen():
  """With 0 and 1 as limits of a uniform number the first and the last choice are the delicate ones."""
  discrete = MultiDiscrete(torch.tensor([-1e9, 0.0, 0.0, -1e9]).expand(5000, 4), (4,))
  assert set(discrete.sample(Random(0, 5000)).flatten().tolist()) == {1, 2}


def test_samples_depend_on_the_environment_alone():
  mean, log_std = parameters(0)
  for policy in (Gaussian, Squashed):
    whole = policy(mean, log_std).sample(Random(0, N))
    assert torch.equal(whole[4:], policy(mean[4:], log_std).sample(Random(0, N - 4, 4)))
  whole = MultiDiscrete(logits(0), SIZES).sample(Random(0, N))
  assert torch.equal(whole[4:], MultiDiscrete(logits(0)[4:], SIZES).sample(Random(0, N - 4, 4)))


def test_bounds_and_spread_by_hand():
  mean = torch.tensor([[1.6, -2.1, 0.3], [1.1, -1.0, 0.0]])
  close(Gaussian(mean, torch.zeros(3)).bounds(), torch.tensor([0.25 + 1.0, 0.0]), 1e-6)
  close(Gaussian(mean, mean).spread(), mean.exp().mean(), 1e-6)
  squashed, discrete = Squashed(mean, torch.zeros(3)), MultiDiscrete(mean, (3,))
  assert [float(squashed.bounds()), float(discrete.bounds()), float(squashed.spread())] == [0, 0, 1]
  assert math.isnan(float(discrete.spread()))


HEADS = [
  ({}, (), Gaussian),
  ({"state_std": True}, (), Gaussian),
  ({"squash": True}, (), Squashed),
  ({"squash": True, "state_std": True}, (), Squashed),
  ({}, SIZES, MultiDiscrete),
]


def head(settings, choices):
  torch.manual_seed(0)
  return action_head(8, A, choices, PPOConfig(log_std_init=-0.5, log_std_min=-2.0, **settings))


@pytest.mark.parametrize(("settings", "choices", "kind"), HEADS)
def test_a_head_rebuilds_the_distribution_of_the_rollout(settings, choices, kind):
  own = head(settings, choices)
  own.remember()
  before = own(FEATURES)
  assert type(before) is kind
  kept = before.parameters.detach().clone()
  assert kept.shape == (6, own.num_parameters)
  assert before.sample(Random(0, 6)).dtype == (own.sample_dtype or torch.float32)
  expected = before.entropy().detach().clone()
  with torch.no_grad():
    for parameter in own.parameters():
      parameter.add_(torch.randn_like(parameter))
    after = own(FEATURES)
    close(own.old(kept).entropy(), expected, 1e-6)
    assert float(own.old(kept).divergence(after).min()) > 0.1
  own.remember()
  close(own.old(after.parameters).divergence(after), torch.zeros(6), 1e-6)


@torch.no_grad()
@pytest.mark.parametrize(("settings", "choices", "kind"), HEADS)
def test_the_first_policy_is_all_noise(settings, choices, kind):
  first = head(settings, choices)(FEATURES)
  if kind is MultiDiscrete:
    for size, log_p in zip(SIZES, first.log_p, strict=True):
      close(log_p, torch.full((6, size), -math.log(size)), 0.1)
  else:
    assert float(first.mean.abs().max()) < 0.1
    assert float((first.log_std + 0.5).abs().max()) < 0.1


@pytest.mark.parametrize("state_std", [False, True])
def test_the_floor_of_the_standard_deviation(state_std):
  own = head({"state_std": state_std}, ())
  (own.output.bias if state_std else own.log_std).data[-A:] = -8.0
  own.project()
  log_std = own(FEATURES).log_std
  close(log_std.detach(), torch.full_like(log_std, -2.0), 5e-3)
  log_std.sum().backward()
  assert ((own.output.bias if state_std else own.log_std).grad[-A:] > 0).all()  # it can rise again


def test_a_start_below_the_floor_is_told():
  with pytest.raises(ConfigError, match=r"^ppo.log_std_init=-4 must be greater than ppo.log_std_min=-3$"):
    action_head(8, A, (), PPOConfig(log_std_init=-4.0))
