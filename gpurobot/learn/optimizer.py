"""Adam over one flat tensor of all weights: one all-reduce, one clip, no step if a gradient is not finite."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from gpurobot.device.distributed import World
from gpurobot.learn.network import Actor

ALIGNMENT = 16  # in numbers: each weight matrix starts at a cache line of the flat tensor
BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's shares of the old moments, and what is added to the root
SHARE = 0.003  # least share of the policy in its average: about the last 300 gradient steps


def flatten(parameters: Sequence[nn.Parameter]) -> tuple[Tensor, list[int]]:
  """Make weights views of one flat tensor, which is returned with the numbers that each takes there."""
  sizes = [-(-p.numel() // ALIGNMENT) * ALIGNMENT for p in parameters]
  flat = parameters[0].new_zeros(sum(sizes), requires_grad=False)
  for parameter, part in zip(parameters, flat.split(sizes), strict=True):
    parameter.data = part[: parameter.numel()].view_as(parameter).copy_(parameter.data)
  return flat, sizes


M = TypeVar("M", bound=nn.Module)


def target_network(module: M) -> tuple[M, Tensor]:
  """Return a copy of a module that has an `Optimizer`, and its weights in the order of `Optimizer.weights`.

  They have no gradients and are for code that moves them all at once, as target networks do.
  """
  copied = copy.deepcopy(module)
  weights, _ = flatten([weight for weight in copied.parameters() if weight.requires_grad])
  return copied.requires_grad_(False), weights


class Optimizer:
  """Adam (Kingma and Ba 2014) on the weights of a module, which become views of one flat tensor.

  The tensor of the gradient also holds sums over samples, the first of them the sum of the weights, so that
  one all-reduce sums both. The learning rate, the norms and the count of skipped steps stay on the device.
  """

  def __init__(self, module: nn.Module, sums: int, rate: float, max_norm: float, world: World) -> None:
    """Flatten a module's weights, but for frozen ones, and copy the main rank's to every rank.

    sums: number of sums over samples. rate: first learning rate. max_norm: of the gradient.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    self.weights, sizes = flatten(parameters)
    self._reduced = torch.zeros_like(self.weights.new_empty(self.weights.numel() + sums))
    self.gradient, self.sums = self._reduced.split([self.weights.numel(), sums])
    for parameter, gradient in zip(parameters, self.gradient.split(sizes), strict=True):
      parameter.grad = gradient[: parameter.numel()].view_as(parameter)
    world.broadcast_(self.weights)
    self.world, self.max_norm, self._first_rate = world, max_norm, rate
    device = self.weights.device
    self.rate = torch.full((), rate, device=device)
    # Steps taken, and the running means of the gradient and of its square.
    self._state = {"step": torch.zeros((), device=device)}
    self._state |= {name: torch.zeros_like(self.weights) for name in ("exp_avg", "exp_avg_sq")}
    # If it is 1, the fused step changes nothing; torch's GradScaler skips steps in the same way.
    self.found_inf = torch.zeros((), device=device)
    # Norm [1] of the last gradient before the clip. It is no scalar, as torch.compile (2.13) drops writes to
    # float64 scalars.
    self.norm = self.weights.new_zeros(1)
    self.skipped = torch.zeros((), dtype=torch.int64, device=device)

  @property
  def steps(self) -> Tensor:
    """Number of steps taken, a scalar; skipped ones do not count."""
    return self._state["step"]

  def clear(self) -> None:
    """Zero the gradient and the sums."""
    self._reduced.zero_()

  def reduce(self) -> None:
    """Sum the gradient and the sums over the ranks, the only collective of a minibatch."""
    self.world.sum_(self._reduced)

  def step(self) -> None:
    """Take one step with the weighted mean gradient, clipped to the maximum norm.

    If it is not finite, all ranks skip the step and zero the sums.
    """
    weight = self.sums[:1].clamp(min=1)
    self.norm.copy_(torch.linalg.vector_norm(self.gradient) / weight)
    bad = ~(self.norm[0] < math.inf)  # nor is nan; `isfinite` is five operations
    self.gradient.mul_((self.max_norm / (self.norm + 1e-6)).clamp_(max=1).div_(weight))
    self.found_inf.copy_(bad)
    self._state["step"] += ~bad
    self._adam_step()
    self.skipped += bad
    self.norm.masked_fill_(bad, 0)
    self.sums.masked_fill_(bad, 0)

  @torch.compiler.disable  # it is one kernel already
  def _adam_step(self) -> None:
    """Take Adam's step, by the kernel of torch.optim.Adam; Adam's own `step` takes longer for its checks."""
    step, first, second = self._state.values()
    torch._fused_adam_(
      [self.weights],
      [self.gradient],
      [first],
      [second],
      [],
      [step],
      lr=self.rate,
      beta1=BETAS[0],
      beta2=BETAS[1],
      weight_decay=0.0,
      eps=EPSILON,
      amsgrad=False,
      maximize=False,
      found_inf=self.found_inf,
    )

  def state_dict(self) -> dict[str, Any]:
    """Return Adam's moments, the learning rate and the count of skipped steps, without the weights."""
    return {
      "adam": {0: self._state},
      "rate": self.rate,
      "first_rate": self._first_rate,
      "skipped": self.skipped,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state; one that began with another learning rate takes its own."""
    for name, tensor in self._state.items():  # in place: a captured graph uses these tensors
      tensor.copy_(state["adam"][0][name])
    before = state.get("first_rate", self._first_rate)  # older checkpoints: of the same settings
    self.rate.copy_(state["rate"]) if before == self._first_rate else self.rate.fill_(self._first_rate)
    self.skipped.copy_(state["skipped"])


class PolicyAverage:
  """Average of the policy's weights over its latest gradient steps, used for evaluation and export.

  Off policy, each gradient step moves the policy towards what the critics of the moment prefer, and after
  some steps it cannot stand for a while. The average can (Polyak and Juditsky 1992, averaged iterates).
  """

  network: Actor

  def __init__(self, policy: Actor, optimizer: Optimizer) -> None:
    """Copy the policy. optimizer: the policy's."""
    self.network, self._weights = target_network(policy)
    self._policy, self._optimizer = policy, optimizer

  @torch.no_grad()
  def update(self) -> None:
    """Take over a share of the policy: 1 / n at its n-th step, and at least SHARE."""
    self._weights.lerp_(self._optimizer.weights, self._share())
    for own, other in zip(self.network.buffers(), self._policy.buffers(), strict=True):
      own.copy_(other)

  def _share(self) -> Tensor:
    """Return the share, a scalar; before the first step that was not skipped it is 1."""
    return self._optimizer.steps.reciprocal().clamp(SHARE, 1).to(self._weights.dtype)
