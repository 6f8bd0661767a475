"""Actor and critic networks: encoders of images, recurrent layer, hidden layers, heads."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gpurobot.learn.critic import Beside, ValuePrediction, twin, twin_head, value_head
from gpurobot.learn.distribution import (
  Distribution,
  Gaussian,
  NoisyHead,
  Squashed,
  StateGaussianHead,
  action_head,
)
from gpurobot.learn.encoder import GroupInput
from gpurobot.learn.env import Image
from gpurobot.learn.estimator import EstimatingInput
from gpurobot.learn.layers import hidden, linear
from gpurobot.learn.own_code import own_layers
from gpurobot.settings.algorithms import (
  Activation,
  OffPolicyConfig,
  PPOConfig,
  Precision,
  Recurrence,
  SACConfig,
  TD3Config,
)

ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
  Activation.elu: lambda: nn.ELU(inplace=True),
  Activation.relu: lambda: nn.ReLU(inplace=True),
  Activation.silu: nn.SiLU,
  Activation.tanh: nn.Tanh,
}
Obs = Mapping[str, Tensor]


class RecurrentCore(nn.Module):
  """Recurrent layer: an LSTM (Hochreiter and Schmidhuber 1997) or GRU (Cho et al. 2014) cell.

  Its state is one tensor [n, state_width]; the first `units` columns are the output.
  """

  def __init__(self, kind: Recurrence, width: int, units: int) -> None:
    super().__init__()
    self.units = units
    self.cell = nn.LSTMCell(width, units) if kind is Recurrence.lstm else nn.GRUCell(width, units)
    self.state_width = 2 * units if kind is Recurrence.lstm else units
    for name, parameter in self.cell.named_parameters():
      nn.init.orthogonal_(parameter) if name.startswith("weight") else nn.init.zeros_(parameter)
    if kind is Recurrence.lstm:  # bias 1 of the forget gate, the second of four (Jozefowicz et al. 2015)
      nn.init.ones_(self.cell.bias_ih.data[units : 2 * units])

  def forward(self, x: Tensor, state: Tensor, restart: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs [steps, n, units] for inputs [steps, n, width], and the state after the last step.

    state [n, state_width] is the state before the first step. Where restart [steps, n] is true, an episode
    starts with the step, and the state before it is reset to 0.
    """
    outputs: list[Tensor] = []
    for step, fresh in zip(x.unbind(0), restart.unbind(0), strict=True):
      state = state.masked_fill(fresh.unsqueeze(-1), 0)
      if isinstance(self.cell, nn.LSTMCell):
        hidden, inner = state.chunk(2, dim=-1)
        state = torch.cat(self.cell(step, (hidden, inner)), dim=-1)
      else:
        state = self.cell(step, state)
      outputs.append(state[:, : self.units])
    return torch.stack(outputs), state


class Layers(NamedTuple):
  """Hidden layers of a trunk, and the recurrent layer before them."""

  hidden: list[int]  # units of each
  layer_norm: bool
  activation: Activation
  own: str | None = None  # reference to what builds a network instead of the hidden layers
  recurrent: Recurrence = Recurrence.none
  recurrent_units: int = 0


def _hidden_layers(width: int, form: Layers) -> tuple[nn.Module, int]:
  """Return the hidden layers for inputs of some width, and the width of their outputs."""
  layers: list[nn.Module] = []
  for units in form.hidden:
    norm = [nn.LayerNorm(units)] if form.layer_norm else []
    layers += [linear(width, units, gain=math.sqrt(2)), *norm, ACTIVATIONS[form.activation]()]
    width = units
  return nn.Sequential(*layers), width


class Trunk(nn.Module):
  """Hidden layers of one observation group, after a recurrent layer in full precision if there is one."""

  def __init__(self, width: int, form: Layers) -> None:
    super().__init__()
    self.recall = (
      None
      if form.recurrent is Recurrence.none
      else RecurrentCore(form.recurrent, width, form.recurrent_units)
    )
    self.state_width = 0 if self.recall is None else self.recall.state_width
    width = width if self.recall is None else self.recall.units
    own = form.own and own_layers(form.own, width, form.hidden)
    self.layers, self.width = own or _hidden_layers(width, form)

  def forward(self, x: Tensor, state: Tensor, restart: Tensor) -> tuple[Tensor, Tensor]:
    """Return features [steps, n, hidden[-1]] for inputs [steps, n, width], and the state after the last step.

    Arguments are as in RecurrentCore.
    """
    rounded = x.dtype is torch.bfloat16
    if self.recall is not None:
      x, state = self.recall(x.to(state.dtype), state, restart)
    return hidden(self.layers, x, rounded, state.dtype), state


class ActorCriticOutput(NamedTuple):
  """Outputs of the network for observations [steps, n, width]."""

  policy: Distribution  # action distribution [steps, n]
  value: ValuePrediction  # [steps, n], normalised; of a two-hot critic in the unit of the transformed reward
  state: Tensor  # [n, state_width] after the last step


def weight_dtype(precision: Precision) -> torch.dtype:
  """Return the type of weights and outputs."""
  return torch.float64 if precision is Precision.float64 else torch.float32


class ActorCritic(nn.Module):
  """One shared trunk, or one each for actor and critic, with heads in float32 or float64.

  Observations are normalised groups [steps, n, width] in `input_dtype`: "policy" for the actor, "critic" for
  the critic (if the environment has that group); and the images that the groups see. With a recurrent layer
  the steps are consecutive steps of n environments, state [n, state_width] is the state before the first, and
  restart [steps, n] marks steps that start an episode. Without one the steps are independent, and state_width
  is 0.
  """

  def __init__(
    self,
    obs_dims: Mapping[str, int],
    num_actions: int,
    choices: tuple[int, ...],
    ppo: PPOConfig,
    images: Mapping[str, Image] = MappingProxyType({}),
    estimated: Mapping[str, Sequence[int]] = MappingProxyType({}),
  ) -> None:
    """Build the network in a precision that is not auto.

    estimated: columns of the group "critic" that the actor estimates, by block.
    """
    super().__init__()
    self.critic_group = group = "critic" if "critic" in obs_dims else "policy"
    self.shared = ppo.shared and self.critic_group == "policy"
    form = Layers(ppo.hidden, ppo.layer_norm, ppo.activation, ppo.network, ppo.recurrent, ppo.recurrent_units)
    self.actor_input = self.critic_input = (
      EstimatingInput(obs_dims["policy"], images, ppo, estimated)
      if estimated
      else GroupInput("policy", obs_dims["policy"], images, ppo)
    )
    self.actor = self.critic = Trunk(self.actor_input.width, form)
    if not self.shared:
      others = self.actor_input if ppo.encoder_shared else None
      self.critic_input = GroupInput(group, obs_dims[group], images, ppo, others)
      self.critic = Trunk(self.critic_input.width, form)
    self.head = action_head(self.actor.width, num_actions, choices, ppo)
    self.value = value_head(self.critic.width, ppo.critic)
    self.widths = [self.actor.state_width, 0 if self.shared else self.critic.state_width]
    self.state_width = sum(self.widths)
    self.precision, self.dtype = ppo.precision, weight_dtype(ppo.precision)
    self.input_dtype = torch.bfloat16 if self.precision is Precision.bf16 else self.dtype
    self.to(self.dtype)

  def forward(self, obs: Obs, state: Tensor, restart: Tensor) -> ActorCriticOutput:
    """Return action distribution and values [steps, n], and the state [n, state_width] after the steps."""
    own, others = state.split(self.widths, dim=-1)
    features, own = self.actor(self.actor_input(obs), own, restart)
    if self.shared:
      return ActorCriticOutput(self.head(features), self.value(features), own)
    latent, others = self.critic(self.critic_input(obs), others, restart)
    return ActorCriticOutput(self.head(features), self.value(latent), torch.cat([own, others], dim=-1))

  def act(self, obs: Obs, state: Tensor, restart: Tensor) -> tuple[Distribution, Tensor]:
    """Return the action distribution [steps, n], and the actor's part of the state after the last step."""
    features, state = self.actor(self.actor_input(obs), state[:, : self.widths[0]], restart)
    return self.head(features), state

  def evaluate(self, obs: Obs, state: Tensor, restart: Tensor) -> Tensor:
    """Return the values [steps, n]; the state is not changed."""
    others = state[:, self.state_width - self.critic.state_width :]
    return self.value(self.critic(self.critic_input(obs), others, restart)[0]).value


class Actor(nn.Module):
  """Actor of an off-policy algorithm: a trunk and a head for actions in [-1, 1].

  It has no memory: the state that it takes and returns has the width 0.
  """

  state_width = 0

  def __init__(
    self,
    obs_dims: Mapping[str, int],
    num_actions: int,
    settings: SACConfig | TD3Config,
    precision: Precision,
    images: Mapping[str, Image] = MappingProxyType({}),
  ) -> None:
    super().__init__()
    form = Layers(settings.hidden, settings.layer_norm, settings.activation, settings.network)
    self.actor_input = GroupInput("policy", obs_dims["policy"], images, settings)
    self.actor = Trunk(self.actor_input.width, form)
    self.head: StateGaussianHead | NoisyHead
    if isinstance(settings, TD3Config):
      self.head = NoisyHead(self.actor.width, num_actions, settings.noise_max)
    else:
      stds = (settings.log_std_init, settings.log_std_min)
      self.head = StateGaussianHead(self.actor.width, num_actions, *stds, Squashed)
    self.precision, self.dtype = precision, weight_dtype(precision)
    self.input_dtype = torch.bfloat16 if precision is Precision.bf16 else self.dtype
    self.to(self.dtype)

  def forward(self, obs: Obs) -> Gaussian:
    """Return the action distribution [n] for normalised groups [n, width] and images."""
    x = self.actor_input(obs)
    return self.head(hidden(self.actor.layers, x, x.dtype is torch.bfloat16, self.dtype))

  def act(self, obs: Obs, state: Tensor, restart: Tensor) -> tuple[Distribution, Tensor]:
    """Return the action distribution [steps, n], and the empty state [n, 0]."""
    features, state = self.actor(self.actor_input(obs), state, restart)
    return self.head(features), state


class TwinCritic(nn.Module):
  """Two critics of observation and action, which share the encoders of the images."""

  def __init__(
    self,
    obs_dims: Mapping[str, int],
    num_actions: int,
    settings: OffPolicyConfig,
    dtype: torch.dtype,
    images: Mapping[str, Image] = MappingProxyType({}),
  ) -> None:
    super().__init__()
    group = "critic" if "critic" in obs_dims else "policy"
    self.input = GroupInput(group, obs_dims[group], images, settings)
    form = Layers(settings.critic_hidden, settings.layer_norm, settings.activation, settings.network)
    trunks = [Trunk(self.input.width + num_actions, form) for _ in range(2)]
    join = Beside if form.own else twin
    self.layers = join(*(trunk.layers for trunk in trunks))
    self.head = twin_head(trunks[0].width, settings.critic)
    self.dtype = dtype
    self.to(dtype)

  def forward(self, obs: Obs, action: Tensor) -> ValuePrediction:
    """Return two predictions [2, n] of the return: normalised observations [n, ...], actions [n, A]."""
    x = self.input(obs)
    inputs = torch.cat([x, action.to(x.dtype)], dim=-1).expand(2, -1, -1)
    return self.head(hidden(self.layers, inputs, x.dtype is torch.bfloat16, self.dtype))
