"""History of the recent states of every environment, kept for those that diverge."""

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from tasks.core.shapes import like

MOST = 8  # environments returned by one call: if thousands diverge, a few show the reason


class StateHistory:
  """Ring buffer of the last states of each environment, which the host reads only in `take`.

  The history of an environment that diverges is frozen until `take` returns it.
  """

  def __init__(self, sim: Any, num_envs: int, length: int) -> None:
    """Keep `length` states for each of the `num_envs` environments of a simulation."""
    mocap = ("mocap_pos", "mocap_quat") if sim.model.nmocap else ()
    self._parts: dict[str, Tensor] = {name: getattr(sim, name) for name in ("qpos", "qvel", "ctrl", *mocap)}
    self._varied: dict[str, Tensor] = {name: getattr(sim, name) for name in sim.model.varied}
    self._kept = {name: part.clone() for name, part in self._varied.items()}  # values at the divergence
    self._length, self._num_envs, device = length, num_envs, sim.qpos.device
    width = sum(part[0].numel() for part in self._parts.values()) + 1  # and the reward
    self._states = torch.zeros((length + 1) * num_envs, width, device=device)  # the last rows are unused
    envs = torch.arange(num_envs, device=device)
    self._row, self._scrap = envs.clone(), length * num_envs + envs  # rows to write: recorded, frozen
    self._last = torch.zeros_like(envs)  # row of the last state of a frozen history
    self._count = torch.zeros_like(envs)  # number of states in the current episode
    self._follows = torch.ones_like(envs, dtype=torch.bool)  # False: diverged and frozen

  def add(self, reward: Tensor, valid: Tensor, ended: Tensor) -> None:
    """Record a step before its reset: its reward, where it was valid and where it ended, [num_envs] each."""
    new = torch.cat([*(part.flatten(1) for part in self._parts.values()), reward.unsqueeze(1)], 1)
    self._states.index_copy_(0, torch.where(self._follows, self._row, self._scrap), new)
    self._count += self._follows
    diverged = torch.gt(self._follows, valid)
    self._last.copy_(torch.where(diverged, self._row, self._last))
    for name, kept in self._kept.items():
      kept.copy_(torch.where(like(diverged, kept), self._varied[name], kept))
    self._follows &= valid
    self._count.masked_fill_(ended & self._follows, 0)
    self._row.add_(self._num_envs).remainder_(self._length * self._num_envs)

  def restart(self) -> None:
    """Clear all histories: the next states are the first of their episodes."""
    self._count.zero_()
    self._follows.fill_(True)

  def take(self) -> TensorDict:
    """Return the histories of n environments that diverged since the last call, at most MOST.

    env [n]: environment index. states: tensors by name [n, length, ...], the oldest first. steps [n]: the
    number of states, counted from the end, that belong to the last episode. reward [n, length]: the reward of
    the step that led to each state. varied: the varied model fields [n, ...] by name.
    """
    envs = (~self._follows).nonzero()[:MOST, 0]
    later = self._num_envs * torch.arange(1, self._length + 1, device=envs.device)
    rows = (self._last[envs].unsqueeze(1) + later) % (self._length * self._num_envs)
    widths = [part[0].numel() for part in self._parts.values()]
    *parts, reward = self._states[rows].split([*widths, 1], dim=2)
    found = {
      "env": envs,
      "steps": self._count[envs].clamp(max=self._length),
      "states": {
        name: part.unflatten(2, self._parts[name].shape[1:])
        for name, part in zip(self._parts, parts, strict=True)
      },
      "reward": reward.squeeze(2),
      "varied": {name: kept[envs] for name, kept in self._kept.items()},
    }
    self._count.masked_fill_(~self._follows, 0)
    self._follows.fill_(True)
    return TensorDict(found, batch_size=[len(envs)])
