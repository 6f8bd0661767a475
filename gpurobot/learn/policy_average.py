"""Average of a policy's weights over its latest gradient steps, which acts where nothing is learnt any more.

Off policy, each gradient step moves the policy towards what the critics of the moment prefer, and some steps
forget for a while how to stand. Their average does not (Polyak and Juditsky 1992, averaged iterates).
"""

import torch
from torch import Tensor

from gpurobot.learn.network import Actor
from gpurobot.learn.optimizer import Optimizer, follower


class PolicyAverage:
  """A network that follows the policy's after each of its gradient steps."""

  network: Actor

  def __init__(self, policy: Actor, optimizer: Optimizer, tau: float) -> None:
    """Copy the policy, whose optimiser is given. `tau` is the share that the average takes over."""
    self.network, self._weights = follower(policy)
    self._policy, self._optimizer, self._tau = policy, optimizer, tau

  @torch.no_grad()
  def follow(self) -> None:
    """Take over a share of the policy: 1 / n at its n-th step, and at least `tau`."""
    self._weights.lerp_(self._optimizer.weights, self._share())
    for own, other in zip(self.network.buffers(), self._policy.buffers(), strict=True):
      own.copy_(other)

  def _share(self) -> Tensor:
    """Return the share, a scalar; before the first step that was not skipped it is 1."""
    return self._optimizer.steps.reciprocal().clamp(self._tau, 1).to(self._weights.dtype)
