"""The history of states of every environment; that of one that diverged stays, for a file."""

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from tasks.core.shapes import like

MOST = 8  # environments that are looked at in one go: where thousands diverge, a few tell why


class StateHistory:
  """The states of the last steps of each environment, the oldest overwritten first; the host reads nothing.

  What an environment that diverges has left behind stays as it is until someone looks at it.
  """

  def __init__(self, sim: Any, num_envs: int, length: int) -> None:
    """Keep `length` states of each of a simulation's environments."""
    mocap = ("mocap_pos", "mocap_quat") if sim.model.nmocap else ()
    self._parts: dict[str, Tensor] = {name: getattr(sim, name) for name in ("qpos", "qvel", "ctrl", *mocap)}
    self._varied: dict[str, Tensor] = {name: getattr(sim, name) for name in sim.model.varied}
    self._kept = {name: part.clone() for name, part in self._varied.items()}  # as it was when one diverged
    self._length, self._num_envs, device = length, num_envs, sim.qpos.device
    width = sum(part[0].numel() for part in self._parts.values()) + 1  # and the reward
    self._states = torch.zeros((length + 1) * num_envs, width, device=device)  # the last rows are scrap
    envs = torch.arange(num_envs, device=device)
    self._place, self._scrap = envs.clone(), length * num_envs + envs  # rows of the next states
    self._last = torch.zeros_like(envs)  # row of the last state of one that stays
    self._count = torch.zeros_like(envs)  # states of the present episode
    self._follows = torch.ones_like(envs, dtype=torch.bool)  # False: diverged, and stays

  def add(self, reward: Tensor, valid: Tensor, ended: Tensor) -> None:
    """Follow a step with its reward [num_envs], before its reset: where it was valid and episodes ended."""
    new = torch.cat([*(part.flatten(1) for part in self._parts.values()), reward.unsqueeze(1)], 1)
    self._states.index_copy_(0, torch.where(self._follows, self._place, self._scrap), new)
    self._count += self._follows
    diverged = torch.gt(self._follows, valid)
    self._last.copy_(torch.where(diverged, self._place, self._last))
    for name, kept in self._kept.items():
      kept.copy_(torch.where(like(diverged, kept), self._varied[name], kept))
    self._follows &= valid
    self._count.masked_fill_(ended & self._follows, 0)
    self._place.add_(self._num_envs).remainder_(self._length * self._num_envs)

  def restart(self) -> None:
    """Forget what has been: the next states are the first of their episodes."""
    self._count.zero_()
    self._follows.fill_(True)

  def take(self) -> TensorDict:
    """Return what led to it where environments diverged since the last call [n], of MOST at most.

    env: which one. states: by name [n, length of the history, ...], the oldest first, of which the last
    `steps` are of its last episode; reward: of the step that led there. varied: its own fields of the model,
    by name.
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
