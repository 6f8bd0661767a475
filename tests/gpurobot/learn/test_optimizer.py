import math

import pytest
import torch
from torch import nn

from gpurobot.device.distributed import World
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.optimizer import Optimizer

X = torch.randn(32, 5, generator=torch.Generator().manual_seed(0))


def module() -> nn.Module:
  torch.manual_seed(0)
  return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))


def optimizer(net: nn.Module, rate: float = 1e-3, max_norm: float = 1.0) -> Optimizer:
  return Optimizer(net, 3, rate, max_norm, World())


def differentiate(own: Optimizer, net: nn.Module, weight: float = 32.0) -> None:
  own.clear()
  net(X).square().sum().backward()
  own.sums.copy_(torch.tensor([weight, 1.0, 2.0]))
  own.reduce()


def test_the_flat_memory_is_the_modules_own():
  net, copy = module(), module()
  own = optimizer(net)
  for parameter, same in zip(net.parameters(), copy.parameters(), strict=True):
    assert torch.equal(parameter, same)
    assert parameter.data_ptr() % 64 == own.weights.data_ptr() % 64
  for one in (net, copy):
    one(X).square().sum().backward()
  squares = sum(float(p.grad.square().sum()) for p in copy.parameters())
  assert float(own.gradient.norm()) == pytest.approx(math.sqrt(squares), rel=1e-6)
  own.weights.data.zero_()
  assert not net(X).any()


@pytest.mark.parametrize("max_norm", [1e9, 0.01])
def test_a_step_is_adams_along_the_clipped_mean_gradient(max_norm):
  net, copy = module(), module()
  own = optimizer(net, max_norm=max_norm)
  theirs = torch.optim.Adam(copy.parameters(), lr=1e-3, eps=1e-8)
  for _ in range(3):
    differentiate(own, net)
    own.step()
    theirs.zero_grad()
    copy(X).square().mean().backward()
    norm = nn.utils.clip_grad_norm_(copy.parameters(), max_norm)
    theirs.step()
    assert float(own.norm) == pytest.approx(float(norm), rel=1e-5)
  for parameter, same in zip(net.parameters(), copy.parameters(), strict=True):
    torch.testing.assert_close(parameter, same)


def test_a_gradient_that_is_not_finite_is_skipped_and_counted():
  net, copy = module(), module()
  own, other = optimizer(net), optimizer(copy)
  differentiate(own, net)
  own.gradient[3] = torch.nan
  own.step()
  assert torch.equal(own.weights, other.weights)
  assert int(own.skipped) == 1
  assert own.sums.tolist() == [0, 0, 0]
  assert float(own.norm) == 0
  for one, network in ((own, net), (other, copy)):  # as if it had never been
    differentiate(one, network)
    one.step()
  assert torch.equal(own.weights, other.weights)
  assert int(own.skipped) == 1
  assert float(own.norm) > 0


def test_another_learning_rate_takes_effect_in_a_resumed_run():
  own = optimizer(module(), rate=1e-3)
  own.rate.mul_(0.5)  # as a schedule does
  for rate, expected in ((1e-3, 5e-4), (2e-3, 2e-3), (0.0, 0.0)):
    other = optimizer(module(), rate=rate)
    other.load_state_dict(to_cpu(own.state_dict()))
    assert float(other.rate) == pytest.approx(expected)
  resting = optimizer(module(), rate=0.0)
  other.load_state_dict(to_cpu(resting.state_dict()))
  own.load_state_dict(to_cpu(resting.state_dict()))
  assert float(own.rate) == pytest.approx(1e-3)
