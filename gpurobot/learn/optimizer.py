"""Adam over one flat tensor of all weights: one all-reduce, one clip, no step if a gradient is not finite."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from gpurobot.device.distributed import World

ALIGNMENT = 16  # in numbers: each weight matrix starts at a cache line of the flat tensor


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
    sizes = [-(-p.numel() // ALIGNMENT) * ALIGNMENT for p in parameters]
    total = sum(sizes)
    self.weights = nn.Parameter(parameters[0].new_zeros(total))
    self._reduced = torch.zeros_like(self.weights.new_empty(total + sums))
    self.gradient, self.sums = self._reduced.split([total, sums])
    self.weights.grad = self.gradient
    pieces = zip(parameters, self.weights.data.split(sizes), self.gradient.split(sizes), strict=True)
    for parameter, weight, gradient in pieces:
      parameter.data = weight[: parameter.numel()].view_as(parameter).copy_(parameter.data)
      parameter.grad = gradient[: parameter.numel()].view_as(parameter)
    world.broadcast_(self.weights.data)
    self.world, self.max_norm, self._first_rate = world, max_norm, rate
    self.rate = torch.full((), rate, device=self.weights.device)
    capturable = self.weights.is_cuda  # by a CUDA graph
    self._adam = torch.optim.Adam([self.weights], lr=self.rate, eps=1e-8, fused=True, capturable=capturable)
    self._adam_step = torch.compiler.disable(self._adam.step)  # it is one kernel already
    # If it is 1, the fused step changes nothing; torch's GradScaler skips steps in the same way.
    self.found_inf = torch.zeros((), device=self.weights.device)
    vars(self._adam)["found_inf"] = self.found_inf
    # Norm [1] of the last gradient before the clip. It is no scalar, as torch.compile (2.13) drops writes to
    # float64 scalars.
    self.norm = self.weights.new_zeros(1)
    self.skipped = torch.zeros((), dtype=torch.int64, device=self.weights.device)
    self.found_inf.fill_(1)
    self._adam.step()  # changes no weight, but allocates the state that later steps change in place

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
    self.gradient.div_(self.sums[0].clamp(min=1))
    self.norm.copy_(torch.linalg.vector_norm(self.gradient))
    bad = ~self.norm[0].isfinite()
    self.gradient.mul_((self.max_norm / (self.norm + 1e-6)).clamp(max=1))
    self.found_inf.copy_(bad)
    self._adam_step()
    self.skipped += bad
    self.norm.masked_fill_(bad, 0)
    self.sums.masked_fill_(bad, 0)

  def state_dict(self) -> dict[str, Any]:
    """Return Adam's moments, the learning rate and the count of skipped steps, without the weights."""
    return {
      "adam": self._adam.state_dict()["state"],
      "rate": self.rate,
      "first_rate": self._first_rate,
      "skipped": self.skipped,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state; one that began with another learning rate continues in proportion."""
    # Adam's load_state_dict would replace the tensors, but a captured graph uses the old ones.
    for name, tensor in self._adam.state[self.weights].items():
      tensor.copy_(state["adam"][0][name])
    before = state.get("first_rate", self._first_rate)  # older checkpoints: of the same settings
    self.rate.copy_(state["rate"])
    if before != self._first_rate:
      self.rate.mul_(self._first_rate / before) if before > 0 else self.rate.fill_(self._first_rate)
    self.skipped.copy_(state["skipped"])
