import math

import pytest
import torch

from gpurobot.learn.random import GAMMA, Random, mix


def test_a_stream_is_the_published_generator():
  """The first outputs of SplitMix64 seeded with 1234567."""
  published = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
  ]
  words = mix(1234567 + torch.arange(1, 6) * GAMMA)
  assert [word % 2**64 for word in words.tolist()] == published


def draws(random: Random, steps: int) -> torch.Tensor:
  kept = []
  for _ in range(steps):
    random.advance()
    kept.append(random.uniform("x", (8,)))
  return torch.stack(kept)  # [steps, envs, 8]


def test_uniform_numbers_are_uniform():
  x = draws(Random(0, 512), 32).flatten().double()
  counts = torch.histc(x, 256, 0, 1)
  expected = len(x) / 256
  chi2 = float(((counts - expected) ** 2 / expected).sum())
  assert abs(chi2 - 255) < 5 * math.sqrt(2 * 255)
  assert 0 <= x.min() <= x.max() < 1


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_neighbours_in_step_environment_and_component_are_uncorrelated(dim):
  x = draws(Random(1, 512), 32).double() - 0.5
  n = x.shape[dim]
  product = x.narrow(dim, 0, n - 1) * x.narrow(dim, 1, n - 1)
  assert abs(float(product.mean())) < 4 / 12 / math.sqrt(product.numel())


def test_pairs_of_purposes_and_seeds_are_independent():
  a, b = Random(0, 4096), Random(1, 4096)
  rows = [a.uniform("x", (16,)), a.uniform("y", (16,)), b.uniform("x", (16,))]
  correlation = torch.corrcoef(torch.stack([row.flatten() for row in rows]).double())
  assert float((correlation - torch.eye(3)).abs().max()) < 4 / math.sqrt(4096 * 16)


def bit_differences(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
  """Return how often each of 32 bits differs."""
  return torch.stack([((a ^ b) >> i & 1).double().mean() for i in range(32)])


@pytest.mark.parametrize("power", range(20))
def test_a_step_of_any_power_of_two_flips_every_bit_half_the_time(power):
  random, other = Random(3, 4096), Random(3, 4096)
  other.load_state_dict({"step": torch.tensor(2**power)})
  a, b = random.bits("x", (16,)), other.bits("x", (16,))
  bound = 4.5 * 0.5 / math.sqrt(a.numel())
  assert float((bit_differences(a, b) - 0.5).abs().max()) < bound


@pytest.mark.parametrize("power", range(12))
def test_an_environment_any_power_of_two_away_flips_every_bit_half_the_time(power):
  a, b = Random(4, 4096).bits("x", (16,)), Random(4, 4096, 2**power).bits("x", (16,))
  bound = 4.5 * 0.5 / math.sqrt(a.numel())
  assert float((bit_differences(a, b) - 0.5).abs().max()) < bound


def test_normal_numbers_have_the_moments_and_tails_of_a_normal_distribution():
  x = Random(0, 4096).normal("x", (63,)).double()
  assert x.shape == (4096, 63)
  n = x.numel()
  for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
    assert abs(float((x**power).mean()) - moment) < 4 * math.sqrt(variance / n)
  inside = float((x.abs() < 1.959964).double().mean())
  assert abs(inside - 0.95) < 4 * math.sqrt(0.95 * 0.05 / n)
  assert float((x[:, 0] * x[:, 32]).mean()) < 4 / 64  # the two numbers of a pair


def test_an_odd_count_of_any_shape_starts_the_longer_stream():
  random = Random(0, 10)
  assert torch.equal(random.uniform("x", (3, 5)).flatten(1), random.uniform("x", (16,))[:, :15])
  assert random.normal("x", (3, 5)).shape == (10, 3, 5)
  assert random.normal("x", ()).shape == (10,)


def test_uniform_keeps_to_its_range():
  x = Random(0, 1000).uniform("x", (3,), -2.0, 5.0)
  assert x.shape == (1000, 3)
  assert float(x.min()) >= -2
  assert float(x.max()) < 5
  assert Random(0, 7).uniform("x", ()).shape == (7,)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_draw_what_one_rank_draws(ranks):
  whole = draws(Random(5, 64), 3)
  parts = [draws(Random(5, 64 // ranks, rank * 64 // ranks), 3) for rank in range(ranks)]
  assert torch.equal(torch.cat(parts, 1), whole)


def test_a_step_repeats_itself_and_the_next_differs():
  random = Random(0, 16)
  assert torch.equal(random.uniform("x", (4,)), random.uniform("x", (4,)))
  before = random.uniform("x", (4,))
  random.advance()
  assert not torch.isin(random.uniform("x", (4,)), before).any()


def test_the_number_of_environments_is_limited():
  with pytest.raises(ValueError, match="environment indices"):
    Random(0, 2, 2**24 - 1)


def test_a_draw_is_below_its_end_where_rounding_would_reach_it(monkeypatch):
  random = Random(0, 1)
  monkeypatch.setattr(
    random, "bits", lambda _purpose, shape: torch.full((1, *shape), 2**31 - 1, dtype=torch.int32)
  )
  for end in (1.0, 5.0, 9.0, 10.0, 11.0):
    assert float(random.uniform("x", (), 0.0, end).long()) == end - 1
