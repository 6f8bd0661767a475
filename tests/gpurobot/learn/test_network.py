import math

import pytest
import torch
from torch import nn

from gpurobot.learn.critic import ScalarValue, TwohotValue
from gpurobot.learn.network import ActorCritic, Layers, RecurrentCore, Trunk, TwinCritic
from gpurobot.settings.algorithms import Critic, PPOConfig, Precision, Recurrence, SACConfig

OBS = {"policy": torch.randn(1, 32, 5), "critic": torch.randn(1, 32, 7)}
STATE, RESTART = torch.zeros(32, 0), torch.zeros(1, 32, dtype=torch.bool)


def network(precision=Precision.float32, obs_dims=None, **settings) -> ActorCritic:
  torch.manual_seed(0)
  return ActorCritic(
    obs_dims or {"policy": 5}, 2, (), PPOConfig(hidden=[16, 8], precision=precision, **settings)
  )


def test_layers_start_orthogonal_and_the_policy_quiet():
  net = network()
  weight = net.actor.layers[2].weight
  torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(8), atol=1e-5, rtol=0)
  with torch.no_grad():
    policy, value, _ = net(OBS, STATE, RESTART)
  assert float(policy.mean.abs().max()) < 0.1 < float(value.value.abs().max())
  assert (policy.mean.shape, value.value.shape) == ((1, 32, 2), (1, 32))


@pytest.mark.parametrize(("obs_dims", "shared", "trunks"), [
  ({"policy": 5}, True, 1), ({"policy": 5}, False, 2), ({"policy": 5, "critic": 7}, True, 2),
])  # fmt: skip
@pytest.mark.parametrize("recurrent", list(Recurrence))
def test_one_trunk_only_where_both_see_the_same(obs_dims, shared, trunks, recurrent):
  net = network(obs_dims=obs_dims, shared=shared, recurrent=recurrent, recurrent_units=4)
  assert len({id(net.actor), id(net.critic)}) == trunks
  assert net.state_width == {Recurrence.none: 0, Recurrence.gru: 4, Recurrence.lstm: 8}[recurrent] * trunks
  state = torch.randn(32, net.state_width)
  policy, value, after = net(OBS, state, RESTART)
  acting, own = net.act(OBS, state, RESTART)
  assert torch.equal(acting.mean, policy.mean)
  assert torch.equal(own, after[:, : own.shape[1]])
  assert torch.equal(net.evaluate(OBS, state, RESTART), value.value)


@pytest.mark.parametrize(("kind", "library"), [(Recurrence.lstm, nn.LSTM), (Recurrence.gru, nn.GRU)])
def test_memory_over_a_sequence_is_torchs_own(kind, library):
  recall, whole = RecurrentCore(kind, 5, 4), library(5, 4)
  names = {name: f"{name}_l0" for name, _ in recall.cell.named_parameters()}
  whole.load_state_dict({names[name]: value for name, value in recall.cell.state_dict().items()})
  x = torch.randn(7, 3, 5)
  outputs, _ = recall(x, torch.zeros(3, recall.state_width), torch.zeros(7, 3, dtype=torch.bool))
  torch.testing.assert_close(outputs, whole(x)[0])


@pytest.mark.parametrize("kind", [Recurrence.lstm, Recurrence.gru])
def test_an_episode_that_starts_remembers_nothing(kind):
  recall = RecurrentCore(kind, 5, 4)
  x, state = torch.randn(6, 3, 5), torch.randn(3, recall.state_width)
  restart = torch.zeros(6, 3, dtype=torch.bool)
  restart[2, 1] = restart[0, 2] = True
  outputs, last = recall(x, state, restart)
  fresh, _ = recall(x[2:, 1:2], torch.zeros(1, recall.state_width), restart[2:, :1])
  torch.testing.assert_close(outputs[2:, 1:2], fresh)
  torch.testing.assert_close(outputs[:2, 1], recall(x[:2], state, restart[:2])[0][:, 1])
  untouched, _ = recall(x, torch.randn(3, recall.state_width), restart)
  torch.testing.assert_close(outputs[:, 2], untouched[:, 2])  # whatever came before
  assert not torch.allclose(outputs[:, 0], untouched[:, 0])
  step_by_step = state
  for t in range(6):
    _, step_by_step = recall(x[t : t + 1], step_by_step, restart[t : t + 1])
  torch.testing.assert_close(step_by_step, last)


def test_bf16_is_near_float32_and_its_heads_are_not_rounded():
  exact, rough = network(), network(Precision.bf16)
  policy, value, _ = exact(OBS, STATE, RESTART)
  policy16, value16, _ = rough({k: x.bfloat16() for k, x in OBS.items()}, STATE, RESTART)
  assert value16.value.dtype == policy16.mean.dtype == torch.float32
  torch.testing.assert_close(value16.value, value.value, atol=0.05, rtol=0.05)
  torch.testing.assert_close(policy16.mean, policy.mean, atol=0.01, rtol=0.05)
  assert not torch.equal(value16.value, value16.value.bfloat16().float())


@pytest.mark.parametrize("kind", list(Critic))
@pytest.mark.parametrize("layer_norm", [False, True])
def test_a_twin_critic_is_two_networks(layer_norm, kind):
  """In values and losses; both start as they would alone, with the same random numbers."""
  settings = SACConfig(critic=kind, critic_hidden=[16, 8], layer_norm=layer_norm)
  torch.manual_seed(0)
  critics = TwinCritic({"policy": 5}, 2, settings, torch.float64)
  torch.manual_seed(0)
  trunks = [Trunk(7, Layers([16, 8], layer_norm, settings.activation)).double() for _ in range(2)]
  nn.init.normal_(critics.head.output.weight)
  obs, action, return_ = torch.randn(9, 5).double(), torch.randn(9, 2).double(), 9 * torch.randn(9).double()
  both = critics({"policy": obs}, action)
  state, restart = obs.new_zeros(9, 0), torch.zeros(1, 9, dtype=torch.bool)
  for index, trunk in enumerate(trunks):
    features, _ = trunk(torch.cat([obs, action], -1), state, restart)
    weight, bias = critics.head.output.weight[index], critics.head.output.bias[index]
    output = features @ weight + bias
    scalar = kind is Critic.scalar
    alone = ScalarValue(output.squeeze(-1)) if scalar else TwohotValue(output, critics.head.bins)
    torch.testing.assert_close(both.value[index], alone.value)
    losses = both.loss(return_, return_, 0.0)
    torch.testing.assert_close(losses[index], alone.loss(return_, return_, 0.0))


def test_layer_norm_comes_before_each_nonlinearity():
  net = network(layer_norm=True)
  kinds = [type(layer) for layer in net.actor.layers]
  assert kinds == 2 * [nn.Linear, nn.LayerNorm, nn.SiLU]
  assert math.isfinite(float(net(OBS, STATE, RESTART).value.value.sum()))
