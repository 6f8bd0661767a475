import math

import pytest
import torch
from torch import Tensor

from gpurobot.learn.critic import BINS, HALF, Bins, ScalarValue, TwohotHead, TwohotValue
from gpurobot.learn.loss import total
from gpurobot.learn.off_policy.loss import (
  critic_loss,
  joint,
  sac_terms,
  target,
  td3_terms,
  temperature_loss,
)


def certain(*values: float) -> TwohotValue:
  """Return predictions of values that lie on bins, with near certainty."""
  bins = Bins().double()
  index = (bins.returns - torch.tensor(values, dtype=torch.float64)[:, None]).abs()[:, :-1].argmin(1)
  return TwohotValue(1000 * torch.nn.functional.one_hot(bins.nearest[index, 0], 2 * HALF).double(), bins)


def vector(*values: float) -> Tensor:
  return torch.tensor(values, dtype=torch.float64)


def test_the_smaller_value_counts_or_the_mean():
  bins = Bins().returns.tolist()
  low, high = bins[60], bins[70]
  pair = [certain(low, high), certain(high, low)]
  both = TwohotValue(torch.stack([one.logits for one in pair]), pair[0].bins)
  assert joint(both, clipped=True).tolist() == pytest.approx([low, low])
  assert joint(both, clipped=False).tolist() == pytest.approx([(low + high) / 2] * 2)


def test_a_target_by_hand():
  found = target(vector(1, 1, 1), vector(0.5, 0.25, 0), vector(4, 8, math.nan))
  assert found.tolist() == [3, 3, 1]  # what follows a failure does not count, whatever it is


def test_the_critics_loss_by_hand():
  """Equal logits have the cross entropy log(BINS); two critics, three samples, of which one is not valid."""
  flat = TwohotHead(1).double()(torch.zeros(2, 3, 1, dtype=torch.float64))
  samples = (vector(0, 1, 7), vector(2, 4, 100), vector(1, 1, 0))
  loss, sums, error = critic_loss(flat, joint(flat, clipped=True), *samples)
  assert float(loss.detach()) == pytest.approx(2 * 2 * math.log(BINS))
  assert sums.tolist() == pytest.approx([2, 2 * math.log(BINS), 0, 6], abs=1e-12)
  assert error.tolist() == pytest.approx([0, 1, 7], abs=1e-12)


def test_the_loss_of_scalar_critics_by_hand():
  """Three samples, of which one is not valid; the smaller values are 1, 2 and 5."""
  values = vector(1, 4, 9, 3, 2, 5).view(2, 3).requires_grad_()
  samples = (vector(2, 2, 7), vector(2, 4, 100), vector(1, 0.5, 0))
  loss, sums, error = critic_loss(ScalarValue(values), vector(1, 2, 5), *samples)
  loss.backward()
  assert float(loss.detach()) == 0.5 * (1 + 1) + 0.5 * 0.5 * 4
  assert values.grad.tolist() == [[-1, 1, 0], [1, 0, 0]]
  assert sums.tolist() == [1.5, 0.5 * (1 + 1) / 2 + 0.5 * 0.5 * 4 / 2, 1 + 0.5 * 2, 2 + 0.5 * 4]
  assert error.tolist() == [1, 0, 2]


def test_sacs_loss_by_hand():
  log_std = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
  terms, sums = sac_terms(vector(3, 100), vector(0.5), vector(2, 100), log_std, vector(1, 0))
  assert {name: term.tolist() for name, term in terms.items()} == {"value": [-3, -100], "entropy": [1, 50]}
  assert float(total(terms, vector(1, 0))) == 0.5 * 2 - 3
  assert sums.tolist() == [1, -2, -2, 1]


def test_sacs_policy_follows_value_and_entropy():
  value, log_prob = vector(3, 1).requires_grad_(), vector(2, 1).requires_grad_()
  terms, sums = sac_terms(value, vector(0.5), log_prob, vector(0, 0)[:, None], vector(1, 0))
  total(terms, vector(1, 0)).backward()
  assert not sums.requires_grad
  assert value.grad.tolist() == [-1, 0]
  assert log_prob.grad.tolist() == [0.5, 0]


def test_td3s_loss_by_hand():
  value = vector(3, 1, 7).requires_grad_()
  terms, sums = td3_terms(value, vector(1, 1, 0))
  loss = total(terms, vector(1, 1, 0))
  loss.backward()
  assert float(loss.detach()) == -4
  assert sums.tolist() == [2, -4]
  assert not sums.requires_grad
  assert value.grad.tolist() == [-1, -1, 0]


@pytest.mark.parametrize(("entropy", "sign"), [(0.5, 1), (1.5, -1), (1.0, 0)])
def test_the_temperature_grows_where_entropy_is_less_than_its_target(entropy, sign):
  log_alpha = vector(math.log(0.5)).requires_grad_()
  loss = temperature_loss(log_alpha, vector(-entropy, 9), 1.0, vector(1, 0))
  loss.sum().backward()
  assert float(-log_alpha.grad) == pytest.approx(0.5 * (1 - entropy))  # the way a step goes
  assert float(-log_alpha.grad.sign()) == sign
