import pytest
import torch

from gpurobot.learn.normalize import BOUND, OUTLIER, Moments, ObservationNormalizer, symlog

CPU = torch.device("cpu")


def collect(parts, start=None, dtype=torch.float32) -> Moments:
  moments = Moments(3, CPU, dtype)
  if start is not None:
    moments.load_state_dict(start)
  for x, weight in parts:
    moments.accumulate(x, weight)
  moments.merge()
  return moments


def samples(seed=0, n=1000) -> torch.Tensor:
  generator = torch.Generator().manual_seed(seed)
  return torch.randn(n, 3, generator=generator) * torch.tensor([0.1, 1, 1e3]) + torch.tensor([10.0, 0, -5])


def test_merged_moments_are_those_of_the_union():
  x = samples(n=3000)
  moments = Moments(3, CPU)
  for batch in (x[:10], x[10:1500], x[1500:]):
    moments.accumulate(batch, torch.ones(len(batch)))
    moments.merge()
  reference = x.double()
  assert float(moments.count) == 3000
  assert float(((moments.mean - reference.mean(0)) / reference.std(0)).abs().max()) < 1e-12
  torch.testing.assert_close(moments.variance, reference.var(0, correction=0), rtol=1e-10, atol=0)


def test_ranks_merge_exactly_into_the_union():
  x = samples()
  start = collect([(samples(1), torch.ones(1000))]).state_dict()
  alone = collect([(x, torch.ones(1000))], start)
  parts = [Moments(3, CPU) for _ in range(2)]
  for moments, share in zip(parts, (x[:300], x[300:]), strict=True):
    moments.load_state_dict(start)
    moments.accumulate(share, torch.ones(len(share)))
  parts[0].pending += parts[1].pending  # what the ranks' sum makes of it
  parts[0].merge()
  assert float(((parts[0].mean - alone.mean) / alone.variance.sqrt()).abs().max()) < 1e-13
  torch.testing.assert_close(parts[0].variance, alone.variance, rtol=1e-13, atol=0)


def test_invalid_samples_have_no_weight():
  x = samples()
  weight = (torch.arange(1000) % 3 > 0).float()
  kept = x[weight > 0]
  expected, found = collect([(kept, torch.ones(len(kept)))]), collect([(x, weight)])
  torch.testing.assert_close(found.variance, expected.variance, rtol=1e-12, atol=0)
  assert float(found.count) == len(kept)


def test_relative_moments_scale_with_what_they_measure():
  """By hand: the values 1 and 3 have mean 2 and variance 1; in relative units 1e-5 is added 4 times."""
  for size, relative, variance in ((1.0, False, 1 + 1e-5), (1.0, True, 1 + 4e-5), (1e-8, True, 1 + 4e-5)):
    moments = Moments(1, CPU, torch.float64)
    moments.relative = relative
    moments.accumulate(size * torch.tensor([[1.0], [3.0]], dtype=torch.float64), torch.ones(2))
    moments.merge()
    assert float(moments.unit[1]) == pytest.approx(size * variance**0.5, rel=1e-12)


def test_moments_are_frozen_until_the_merge():
  moments = Moments(3, CPU)
  x = samples()
  moments.accumulate(x, torch.ones(1000))
  assert torch.equal(moments.normalize(x), x)
  moments.merge()
  z = moments.normalize(x)
  torch.testing.assert_close(z[:, 1:].mean(0), torch.zeros(2), atol=1e-5, rtol=0)
  torch.testing.assert_close(z[:, 1:].std(0, correction=0), torch.ones(2), atol=1e-4, rtol=0)
  torch.testing.assert_close(moments.denormalize(z), x, rtol=1e-6, atol=1e-3)


def test_a_merge_of_nothing_changes_nothing():
  moments = collect([(samples(), torch.ones(1000))])
  before = {name: tensor.clone() for name, tensor in moments.state_dict().items()}
  moments.merge()
  assert all(torch.equal(before[name], tensor) for name, tensor in moments.state_dict().items())


@pytest.mark.parametrize("first", [0, 1])
def test_one_outlier_does_not_flatten_a_column(first):
  """Before or after the first merge it counts as OUTLIER; unbounded, the deviation would be 3,000."""
  moments = ObservationNormalizer({"policy": 1}, CPU, (torch.float32, torch.float32), True).moments["policy"]
  generator = torch.Generator().manual_seed(0)
  for batch in range(100):
    x = torch.randn(1000, 1, generator=generator)
    if batch == first:
      x[17] = 1e6
    moments.accumulate(x, torch.ones(1000))
    moments.merge()
    if batch == first:
      assert float(moments.variance) < 1 + 1.3 * OUTLIER**2 / (1000 * (first + 1))
  assert float(moments.variance) == pytest.approx(1 + OUTLIER**2 / 1e5, rel=0.05)


@pytest.mark.parametrize(("start", "later"), [(0.0, 1.0), (0.0, 1e3), (1.0, 1e4)])
def test_moments_that_are_too_narrow_widen_within_a_few_merges(start, later):
  moments = Moments(1, CPU)
  generator = torch.Generator().manual_seed(0)
  for size in [start] * 100 + [later] * 8:
    moments.accumulate(size * torch.randn(1000, 1, generator=generator), torch.ones(1000))
    moments.merge()
  assert float(moments.variance.sqrt()) > 0.15 * later  # without a bound: 0.27


def test_moments_taken_back_bound_as_at_the_start():
  moments = Moments(1, CPU, reach=OUTLIER)
  empty = {name: tensor.clone() for name, tensor in moments.state_dict().items()}
  moments.accumulate(torch.full((10, 1), 1e-3), torch.ones(10))
  moments.merge()
  moments.load_state_dict(empty)
  moments.accumulate(torch.tensor([[1e6], [-50.0]]), torch.ones(2))
  moments.merge()
  assert float(moments.mean) == (OUTLIER - 50) / 2


def test_moments_restored_before_the_first_merge_change_nothing():
  moments = Moments(3, CPU)
  moments.load_state_dict(Moments(3, CPU).state_dict())
  assert torch.equal(moments.normalize(samples()), samples())


def test_counts_beyond_float32():
  moments = Moments(1, CPU)
  moments.load_state_dict({"count": torch.tensor([2.0**24]), "mean": torch.zeros(1), "m2": torch.ones(1)})
  moments.accumulate(torch.zeros(1, 1), torch.ones(1))
  moments.merge()
  assert int(moments.count) == 2**24 + 1


def test_symlog():
  x = torch.tensor([-1e6, -1.0, 0.0, 1e-3, 250.0], dtype=torch.float64)
  values = [-13.815511557963774, -0.6931471805599453, 0.0, 9.995003330835334e-4, 5.525452939131784]
  expected = torch.tensor(values, dtype=torch.float64)
  torch.testing.assert_close(symlog(x), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("enabled", [True, False])
def test_observations_are_normalised_bounded_and_converted(enabled):
  observations = ObservationNormalizer({"policy": 3}, CPU, (torch.float32, torch.bfloat16), enabled)
  observations.accumulate({"policy": samples()}, torch.ones(1000))
  observations.merge()
  far = {"policy": torch.tensor([[10.0, 1e6, -5.0]])}
  prepared = observations(far)["policy"]
  assert prepared.dtype == torch.bfloat16
  assert float(prepared[0, 1]) == (BOUND if enabled else float(torch.tensor(1e6).bfloat16()))


def test_clipped_observations_are_counted_in_the_last_step():
  observations = ObservationNormalizer({"policy": 3}, CPU, (torch.float32, torch.float32), True)
  x = torch.zeros(2, 4, 3)
  x[0], x[1, 0, 0], x[1, 2, 1] = BOUND, BOUND, -BOUND
  assert float(observations.clipped(x)) == pytest.approx(2 / 12)


def test_sums_about_another_mean_are_taken_in_as_ones_own():
  x, y = samples(1), samples(2)
  own = collect([(x, torch.ones(1000))])
  other = collect([(y, torch.ones(1000))])
  other.accumulate(x[:10], torch.ones(10))
  own.take(other)
  assert not other.pending.any()
  own.merge()
  expected = collect([(torch.cat([x, x[:10]]), torch.ones(1010))])
  for name, tensor in expected.state_dict().items():
    torch.testing.assert_close(own.state_dict()[name], tensor, rtol=1e-12, atol=1e-12)
