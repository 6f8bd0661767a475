import math

import pytest
import torch
from torch import nn

from gpurobot.learn.critic import (
  BINS,
  HALF,
  MASKED_LOGIT,
  REACH,
  Beside,
  Bins,
  ScalarHead,
  ScalarValue,
  TwohotHead,
  TwohotValue,
  twin,
  twin_head,
  value_head,
)
from gpurobot.settings.algorithms import Critic

FEATURES = torch.randn(6, 8)


def twohot(logits: torch.Tensor) -> TwohotValue:
  """Return the prediction of logits [..., BINS] in the order of the bins."""
  bins = Bins().to(logits.dtype)
  columns = torch.cat([bins.nearest[:, 0], bins.nearest[-1:, 1]])
  empty = logits.new_full((*logits.shape[:-1], 2 * HALF), MASKED_LOGIT)
  return TwohotValue(empty.index_copy(-1, columns, logits), bins)


def test_the_scalar_loss_by_hand():
  """Where that is worse a value counts as 0.2, which is as far as it may move from 0."""
  value = ScalarValue(torch.tensor([1.0, 1.0, 1.0, 0.1]))
  loss = value.loss(torch.tensor([2.0, 0.0, 1.0, 1.0]), torch.zeros(4), 0.2)
  expected = [0.5 * 1.8**2, 0.5 * 1.0**2, 0.5 * 0.8**2, 0.5 * 0.9**2]
  assert loss.tolist() == pytest.approx(expected, rel=1e-6)


def test_without_an_old_value_the_scalar_loss_is_half_the_squared_error():
  loss = ScalarValue(torch.tensor([[1.0, 3.0], [2.0, -2.0]])).loss(torch.tensor([2.0, 0.0]))
  assert loss.tolist() == [[0.5, 4.5], [0.0, 2.0]]


def test_bins_are_finest_around_zero():
  bins = Bins().returns.double()
  assert len(bins) == BINS
  assert float(bins[BINS // 2]) == 0
  assert float(bins[-1]) == pytest.approx(math.expm1(REACH), rel=1e-6)
  torch.testing.assert_close(bins, -bins.flip(0), rtol=0, atol=0)
  assert (bins.diff().diff()[BINS // 2 :] > 0).all()


@pytest.mark.parametrize("return_", [0.0, 0.01, -0.3, 1.7, -19.0, 5.123])
def test_the_best_distribution_has_the_return_as_its_mean(return_):
  """At the minimum of the cross entropy the probabilities are the two weights."""
  logits = torch.zeros(1, BINS, dtype=torch.float64, requires_grad=True)
  target = torch.tensor([return_], dtype=torch.float64)
  twohot(logits).loss(target, target, 0.2).backward()
  weights = logits.detach().softmax(-1) - logits.grad  # the gradient is p - weights
  assert float(weights.sum()) == pytest.approx(1)
  assert int((weights > 1e-12).sum()) <= 2
  assert float(weights @ twohot(logits).bins.returns) == pytest.approx(return_, abs=1e-12)


def test_returns_out_of_reach_count_as_the_outermost():
  logits = torch.randn(1, BINS).expand(2, -1)
  loss = twohot(logits).loss(torch.tensor([1e9, -1e9]), torch.zeros(2), 0.2)
  torch.testing.assert_close(loss, -logits.log_softmax(-1)[0, [-1, 0]])


def test_a_return_that_is_no_number_gives_a_loss_that_is_none():
  loss = twohot(torch.randn(2, BINS)).loss(torch.tensor([math.nan, 1.0]), torch.zeros(2), 0.2)
  assert loss.isnan().tolist() == [True, False]


def test_a_head_learns_nothing_of_the_column_that_is_no_bin():
  head = TwohotHead(8)
  bins = head(FEATURES).bins
  assert sorted([HALF, *bins.nearest[:, 0].tolist(), int(bins.nearest[-1, 1])]) == [*range(2 * HALF)]
  prediction = head(FEATURES)
  assert float(prediction.value.detach().abs().max()) < 1e-6  # where it starts
  (prediction.value + prediction.loss(torch.randn(6), torch.zeros(6), 0.2)).sum().backward()
  assert not head.output.bias.grad[HALF]
  assert not head.output.weight.grad[HALF].any()


def test_a_large_return_and_its_opposite_cancel_exactly():
  logits = torch.zeros(BINS)
  logits[[0, -1]] = 50.0
  assert float(twohot(logits).value) == 0.0


@pytest.mark.parametrize("critic", list(Critic))
def test_gradients_and_shapes(critic):
  torch.manual_seed(0)
  head = value_head(8, critic).double()
  torch.nn.init.normal_(head.output.weight)
  assert isinstance(head, TwohotHead if critic is Critic.twohot else ScalarHead)
  features = FEATURES.double().view(2, 3, 8).requires_grad_()
  assert head(features).value.shape == (2, 3)
  old, return_ = torch.randn(2, 2, 3, dtype=torch.float64)
  torch.autograd.gradcheck(lambda x: (head(x).value, head(x).loss(return_, old, 0.2)), (features,))


def network() -> nn.Sequential:
  layers = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.SiLU(), nn.Linear(4, 2)).double()
  for weight in layers.parameters():
    nn.init.normal_(weight)
  return layers


def test_twins_compute_what_each_computes_alone():
  first, second = network(), network()
  x = torch.randn(2, 5, 3, dtype=torch.float64)
  alone = torch.stack([first(x[0]), second(x[1])])
  for join in (twin, Beside):
    both = join(first, second)
    torch.testing.assert_close(both(x), alone)
    shared = x[0].expand(2, -1, -1)  # the same inputs for both
    torch.testing.assert_close(both(shared), torch.stack([first(x[0]), second(x[0])]))


@pytest.mark.parametrize("kind", list(Critic))
def test_twin_heads_predict_what_each_predicts_alone(kind):
  both, first, second = twin_head(3, kind).double(), *(value_head(3, kind).double() for _ in range(2))
  features, return_ = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
  for i, own in enumerate((first, second)):
    own.output.weight.data.copy_(both.output.weight[i].T)
    own.output.bias.data.copy_(both.output.bias[i, 0])
  alone, found = [own(part) for own, part in zip((first, second), features, strict=True)], both(features)
  torch.testing.assert_close(found.value, torch.stack([own.value for own in alone]))
  torch.testing.assert_close(found.loss(return_), torch.stack([own.loss(return_) for own in alone]))
