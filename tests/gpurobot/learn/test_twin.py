import pytest
import torch
from torch import nn

from gpurobot.algorithm_config import Critic
from gpurobot.learn.critic import value_head
from gpurobot.learn.twin import Beside, twin, twin_head


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


def test_gradients_of_both():
  both = twin(network(), network())
  x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
  torch.autograd.gradcheck(lambda *inputs: both(inputs[0]), (x, *both.parameters()))
