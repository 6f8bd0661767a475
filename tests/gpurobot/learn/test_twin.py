import torch
from torch import nn

from gpurobot.learn.twin import Beside, twin


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


def test_gradients_of_both():
  both = twin(network(), network())
  x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
  torch.autograd.gradcheck(lambda *inputs: both(inputs[0]), (x, *both.parameters()))
