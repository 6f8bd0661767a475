"""Actor and critic networks, the actions' distribution, and the flat memory of weights and gradients."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gpurobot.config import PPO, Activation, Precision

ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
  Activation.elu: lambda: nn.ELU(inplace=True),
  Activation.relu: lambda: nn.ReLU(inplace=True),
  Activation.silu: nn.SiLU,
  Activation.tanh: nn.Tanh,
}
ALIGNMENT = 16  # numbers: each weight matrix starts on a cache line of the flat memory


@dataclass(frozen=True)
class Gaussian:
  """Independent normal distributions of the actions: mean [..., num_actions], log_std [num_actions]."""

  mean: Tensor
  log_std: Tensor

  def sample(self, noise: Tensor) -> Tensor:
    """Return actions from standard normal noise."""
    return self.mean + self.log_std.exp() * noise

  def log_prob(self, action: Tensor) -> Tensor:
    """Return the log density of actions [nat], [...]."""
    squares = (action - self.mean).square() @ (-2 * self.log_std).exp()
    return -0.5 * squares - self.log_std.sum() - 0.5 * math.log(2 * math.pi) * action.shape[-1]

  def entropy(self) -> Tensor:
    """Return the differential entropy [nat], a scalar: it does not depend on the mean."""
    return self.log_std.sum() + 0.5 * (1 + math.log(2 * math.pi)) * self.log_std.numel()

  def divergence(self, other: "Gaussian") -> Tensor:
    """Return the Kullback-Leibler divergence KL(self || other) [nat], [...]."""
    inverse = (-2 * other.log_std).exp()
    spread = (2 * self.log_std).exp() * inverse - 1 + 2 * (other.log_std - self.log_std)
    return 0.5 * ((self.mean - other.mean).square() @ inverse + spread.sum())


def resolve(precision: Precision, device: torch.device) -> Precision:
  """Return the precision that auto means on a device: bf16 only where the hardware multiplies in it."""
  if precision is not Precision.auto:
    return precision
  if device.type == "cuda":
    return Precision.bf16 if torch.cuda.get_device_capability(device)[0] >= 8 else Precision.float32
  return Precision.bf16 if torch.cpu.get_capabilities().get("amx_bf16", False) else Precision.float32


class Core(nn.Sequential):
  """Hidden layers: [..., width] to [..., hidden[-1]]."""

  def __init__(self, width: int, hidden: list[int], activation: Activation) -> None:
    layers: list[nn.Module] = []
    for units in hidden:
      layers += [_linear(width, units, gain=math.sqrt(2)), ACTIVATIONS[activation]()]
      width = units
    super().__init__(*layers)
    self.width = width


def _linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
  """Return a layer with orthogonal weights and no bias at the start (Saxe et al. 2013)."""
  layer = nn.Linear(inputs, outputs)
  nn.init.orthogonal_(layer.weight, gain)
  nn.init.zeros_(layer.bias)
  return layer


class ActorCritic(nn.Module):
  """Hidden layers (one trunk, or one each) in the chosen precision below linear heads in float32 or float64.

  Inputs are normalised observation groups in `input_dtype`: "policy" for the actor, "critic" (where the
  environment has it) for the critic. The value is in normalised units.
  """

  def __init__(self, obs_dims: Mapping[str, int], num_actions: int, ppo: PPO, precision: Precision) -> None:
    super().__init__()
    self.critic_group = "critic" if "critic" in obs_dims else "policy"
    self.shared = ppo.shared and self.critic_group == "policy"
    self.actor = Core(obs_dims["policy"], ppo.hidden, ppo.activation)
    self.critic = self.actor if self.shared else Core(obs_dims[self.critic_group], ppo.hidden, ppo.activation)
    self.mean = _linear(self.actor.width, num_actions, gain=0.01)  # small: the first policy is all noise
    self.value = _linear(self.critic.width, 1, gain=1.0)
    self.log_std = nn.Parameter(torch.full((num_actions,), ppo.log_std_init))
    self.log_std_min = ppo.log_std_min
    self.dtype = torch.float64 if precision is Precision.float64 else torch.float32  # of weights and outputs
    self.input_dtype = torch.bfloat16 if precision is Precision.bf16 else self.dtype
    self.to(self.dtype)

  def forward(self, obs: Mapping[str, Tensor]) -> tuple[Gaussian, Tensor]:
    """Return the distribution of the actions [n, num_actions] and the value [n]."""
    hidden = self._run(self.actor, obs["policy"])
    latent = hidden if self.shared else self._run(self.critic, obs[self.critic_group])
    return Gaussian(self.mean(hidden), self.log_std), self.value(latent).squeeze(-1)

  def act(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return the mean action [n, num_actions]."""
    return self.mean(self._run(self.actor, obs["policy"]))

  def evaluate(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return the value [n]."""
    return self.value(self._run(self.critic, obs[self.critic_group])).squeeze(-1)

  def _run(self, core: Core, x: Tensor) -> Tensor:
    with torch.autocast(x.device.type, torch.bfloat16, enabled=self.input_dtype is torch.bfloat16):
      return core(x).to(self.dtype)

  @torch.no_grad()
  def project(self) -> None:
    """Keep the standard deviation at or above its floor; gradients still flow at the floor."""
    self.log_std.clamp_(min=self.log_std_min)


class FlatMemory:
  """One buffer for all weights of a module, and one for all gradients with room for sums behind them.

  One all-reduce then serves gradients and statistics, and the optimiser sees a single tensor.
  """

  def __init__(self, module: nn.Module, extra: int) -> None:
    parameters = list(module.parameters())
    sizes = [-(-p.numel() // ALIGNMENT) * ALIGNMENT for p in parameters]
    self.weights = nn.Parameter(parameters[0].new_zeros(sum(sizes)))
    self.reduced = torch.zeros_like(
      self.weights.new_empty(sum(sizes) + extra)
    )  # gradient, then the extra sums
    self.gradient, self.extra = self.reduced.split([sum(sizes), extra])
    self.weights.grad = self.gradient
    pieces = zip(parameters, self.weights.data.split(sizes), self.gradient.split(sizes), strict=True)
    for parameter, weight, gradient in pieces:
      parameter.data = weight[: parameter.numel()].view_as(parameter).copy_(parameter.data)
      parameter.grad = gradient[: parameter.numel()].view_as(parameter)
