import pytest
import torch

from gpurobot.learn.estimator import EstimatingInput, estimated_columns
from gpurobot.learn.network import ActorCritic
from gpurobot.settings.algorithms import PPOConfig, Precision
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy
from tests.gpurobot.learn.test_ppo import iterate, learner

NAMES = {"column of 'policy'": ["x", "x"], "column of 'critic'": ["x", "x", "v", "f", "v"]}


def network(*blocks, precision=Precision.float64):
  torch.manual_seed(0)
  ppo = PPOConfig(hidden=[8], estimate=[*blocks], precision=precision)
  return ActorCritic({"policy": 2, "critic": 5}, 3, (), ppo, estimated=estimated_columns(NAMES, ppo))


def observations(dtype=torch.float64):
  return {"policy": torch.randn(2, 6, 2, dtype=dtype), "critic": torch.randn(2, 6, 5, dtype=dtype)}


def run(net, obs):
  return net(obs, torch.zeros(6, 0, dtype=net.dtype), torch.zeros(2, 6, dtype=torch.bool))


def test_columns_are_those_of_the_blocks():
  assert estimated_columns(NAMES, PPOConfig(estimate=["f", "v"])) == {"f": [3], "v": [2, 4]}
  assert estimated_columns({}, PPOConfig()) == {}


@pytest.mark.parametrize(("names", "way"), [(NAMES, "write one of v, f"), ({}, "leave it out")])
@pytest.mark.parametrize("block", ["x", "speed"])
def test_blocks_that_the_critic_alone_does_not_observe_are_named(names, way, block):
  with pytest.raises(ConfigError, match=f"ppo.estimate: '{block}' .*; {way}$"):
    estimated_columns(names, PPOConfig(estimate=["v", block] if names else [block]))


def test_policy_and_estimator_learn_from_their_own_losses_alone():
  net, obs = network("v", "f"), observations()
  seen = net.actor_input
  assert isinstance(seen, EstimatingInput)
  run(net, obs).policy.mean.sum().backward()
  assert all(weight.grad is None for weight in seen.estimator.parameters())
  assert net.actor.layers[0].weight.grad[:, 2:].any()  # the policy sees the estimates
  net.zero_grad()
  seen.errors(obs).square().sum().backward()
  assert all(weight.grad is not None for weight in seen.estimator.parameters())
  assert not any(weight.grad is not None and weight.grad.any() for weight in net.actor.parameters())


def test_errors_are_reported_by_block_in_its_unit():
  net, obs, unit = network("f", "v"), observations(), torch.tensor([1.0, 1, 2, 3, 4]).double()
  errors = net.actor_input.estimate(obs["policy"]) - obs["critic"][..., [3, 2, 4]]
  found = net.actor_input.measure(obs, unit)
  assert list(found) == ["estimate/f", "estimate/v"]
  torch.testing.assert_close(found["estimate/f"], 3 * errors[..., 0].square().mean().sqrt())
  wanted = (2 * errors[..., 1]).square().mean() + (4 * errors[..., 2]).square().mean()
  torch.testing.assert_close(found["estimate/v"], (wanted / 2).sqrt())


def test_bf16_rounds_and_no_more():
  exact, rough = (network("v", precision=precision) for precision in (Precision.float32, Precision.bf16))
  obs = observations(torch.float32)
  one = run(exact, obs).policy.mean.detach()
  other = run(rough, {group: x.to(torch.bfloat16) for group, x in obs.items()}).policy.mean.detach()
  assert other.dtype is torch.float32
  assert 0 < float((one - other).abs().max()) < 0.05 * float(one.abs().max())


def test_ppo_learns_to_estimate_and_logs_the_error(monkeypatch):
  names = {"policy": ["place"] * 2, "critic": ["place", "place", "distance"]}
  monkeypatch.setattr(toy.Task, "obs_names", names)
  one = learner(**{"ppo.estimate": ["distance"]})
  errors = [float(iterate(one, 1).report()["estimate/distance"]) for _ in range(40)]
  assert errors[-1] < 0.25 * errors[0]
