"""Way of an action to the motors: a filter, then a delay of any number of control steps."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


def steps(delay: float, dt: float) -> int:
  """Return over how many control steps of `dt` [s] an action is late at most, at least 1."""
  return max(1, math.ceil(delay / dt - 1e-6))


@dataclass(frozen=True)
class ActionFilter:
  """First-order low-pass filter, then a limit of the rate; in a state of its own, and exported with it."""

  share: float  # of the way to the action in a control step; 1: no low pass
  most: float  # largest change of a target in a control step [rad]; inf: no limit
  scale: Tensor  # targets per action [nu] [rad]

  @classmethod
  def of(cls, cutoff: float, rate: float, dt: float, scale: Tensor) -> "ActionFilter":
    """Return the filter of a cut-off frequency [Hz] and a largest rate [rad/s], 0 for none of either."""
    share = 1.0 - math.exp(-2 * math.pi * cutoff * dt) if cutoff else 1.0
    return cls(share, rate * dt if rate else math.inf, scale)

  def __call__(self, before: Tensor, action: Tensor) -> Tensor:
    """Return the filtered action that follows the filtered one `before` [n, nu] each."""
    most = self.most / self.scale
    return before + (self.share * (action - before)).clamp(-most, most)

  def facts(self) -> dict[str, Any]:
    """Return `share` and, in units of the action, `most` [nu] as plain values; None: no limit."""
    most = None if math.isinf(self.most) else (self.most / self.scale).tolist()
    return {"share": self.share, "most": most}


class ActionPath:
  """Actions under way, in `sent`, a buffer of the task [num_envs, 1 + steps, nu], the latest first."""

  def __init__(self, sent: Tensor, dt: float, count: int, wanted: ActionFilter | None) -> None:
    """Take the duration of a control step [s], the number of its physics steps, and the filter."""
    self.sent, self.filter, self.dt = sent, wanted, dt
    self.time = dt / count * (torch.arange(count, device=sent.device) + 0.5)  # since the action [s]

  def send(self, action: Tensor) -> None:
    """Filter an action [num_envs, nu] and send it off."""
    first = self.filter(self.sent[:, 0], action) if self.filter else action
    self.sent.copy_(torch.cat([first.unsqueeze(1), self.sent[:, :-1]], 1))

  def arrived(self, delay: Tensor) -> Tensor:
    """Return the action at the motors in each physics step [num_envs, count, nu] for `delay` [num_envs]."""
    action = self.sent[:, :1]
    for steps_ago, change in enumerate((self.sent[:, :-1] - self.sent[:, 1:]).unbind(1)):
      late = (self.time + steps_ago * self.dt < delay.unsqueeze(1)).unsqueeze(2)
      action = action - late * change.unsqueeze(1)
    return action
