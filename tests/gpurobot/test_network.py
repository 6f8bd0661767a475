import math

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from gpurobot.config import PPO, Activation, Precision
from gpurobot.network import ActorCritic, FlatMemory, Gaussian

OBS = {"policy": torch.randn(32, 5), "critic": torch.randn(32, 7)}


def gaussian(seed: int) -> tuple[Gaussian, Independent]:
  generator = torch.Generator().manual_seed(seed)
  mean = torch.randn(10, 3, generator=generator, dtype=torch.float64)
  log_std = torch.randn(3, generator=generator, dtype=torch.float64)
  return Gaussian(mean, log_std), Independent(Normal(mean, log_std.exp().expand(10, 3)), 1)


def test_distribution_agrees_with_torch():
  (own, theirs), (other, other_theirs) = gaussian(0), gaussian(1)
  action = own.sample(torch.randn(10, 3, dtype=torch.float64))
  torch.testing.assert_close(own.log_prob(action), theirs.log_prob(action), rtol=1e-13, atol=1e-13)
  torch.testing.assert_close(own.entropy().expand(10), theirs.entropy(), rtol=1e-13, atol=1e-13)
  torch.testing.assert_close(
    own.divergence(other), kl_divergence(theirs, other_theirs), rtol=1e-12, atol=1e-12
  )


def test_samples_follow_the_noise():
  own, _ = gaussian(0)
  assert torch.equal(own.sample(torch.zeros(10, 3)), own.mean)
  torch.testing.assert_close(own.sample(torch.ones(10, 3)) - own.mean, own.log_std.exp().expand(10, 3))


def network(precision=Precision.float32, obs_dims=None, **settings) -> ActorCritic:
  torch.manual_seed(0)
  return ActorCritic(obs_dims or {"policy": 5}, 2, PPO(hidden=[16, 8], **settings), precision)


def test_layers_start_orthogonal_and_the_policy_quiet():
  net = network()
  weight = net.actor[2].weight
  torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(8), atol=1e-5, rtol=0)
  with torch.no_grad():
    policy, value = net(OBS)
  assert float(policy.mean.abs().max()) < 0.1 < float(value.abs().max())
  assert (policy.mean.shape, value.shape) == ((32, 2), (32,))


@pytest.mark.parametrize(("obs_dims", "shared", "trunks"), [
  ({"policy": 5}, True, 1), ({"policy": 5}, False, 2), ({"policy": 5, "critic": 7}, True, 2),
])  # fmt: skip
def test_one_trunk_only_where_both_see_the_same(obs_dims, shared, trunks):
  net = network(obs_dims=obs_dims, shared=shared)
  assert len({id(net.actor), id(net.critic)}) == trunks
  policy, value = net(OBS)
  assert torch.equal(net.act(OBS), policy.mean)
  assert torch.equal(net.evaluate(OBS), value)


@pytest.mark.parametrize("activation", list(Activation))
def test_gradients_of_every_activation(activation):
  net = network(Precision.float64, activation=activation)
  obs = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
  torch.autograd.gradcheck(lambda x: net({"policy": x})[1], (obs,))


def test_bf16_is_near_float32_and_its_heads_are_not_rounded():
  exact, rough = network(), network(Precision.bf16)
  (policy, value), (policy16, value16) = exact(OBS), rough({k: x.bfloat16() for k, x in OBS.items()})
  assert value16.dtype == policy16.mean.dtype == torch.float32
  torch.testing.assert_close(value16, value, atol=0.05, rtol=0.05)
  torch.testing.assert_close(policy16.mean, policy.mean, atol=0.01, rtol=0.05)
  assert not torch.equal(value16, value16.bfloat16().float())


def test_the_floor_of_the_standard_deviation():
  net = network(log_std_min=-1.0)
  net.log_std.data[:] = torch.tensor([-2.0, 0.5])
  net.project()
  assert net.log_std.tolist() == [-1.0, 0.5]
  net(OBS)[0].entropy().backward()
  assert net.log_std.grad.tolist() == [1.0, 1.0]  # it can rise again


def test_flat_memory_is_the_networks_own():
  net, copy = network(), network()
  memory = FlatMemory(net, extra=4)
  for parameter, same in zip(net.parameters(), copy.parameters(), strict=True):
    assert torch.equal(parameter, same)
    assert parameter.data_ptr() % 64 == memory.weights.data_ptr() % 64
  for module in (net, copy):
    module(OBS)[1].square().sum().backward()
  squares = sum(float(p.grad.square().sum()) for p in copy.parameters() if p.grad is not None)
  assert float(memory.gradient.norm()) == pytest.approx(math.sqrt(squares), rel=1e-6)
  assert memory.reduced.numel() == memory.gradient.numel() + 4
  memory.weights.data.zero_()
  assert not net(OBS)[1].any()
