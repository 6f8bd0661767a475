"""The last states of every environment; those of one that diverged stay, for a file."""

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

MOST = 8  # environments that are looked at in one go: where thousands diverge, a few tell why


class Trail:
  """The states of the last steps of each environment, the oldest overwritten first; the host reads nothing.

  What an environment that diverges has left behind stays as it is until someone looks at it.
  """

  def __init__(self, sim: Any, num_envs: int, length: int) -> None:
    """Keep `length` states of each of a simulation's environments."""
    mocap = ("mocap_pos", "mocap_quat") if sim.model.nmocap else ()
    self._parts: dict[str, Tensor] = {name: getattr(sim, name) for name in ("qpos", "qvel", "ctrl", *mocap)}
    self._varied: dict[str, Tensor] = {name: getattr(sim, name) for name in sim.model.varied}
    self._kept = {name: part.clone() for name, part in self._varied.items()}  # as it was when one diverged
    self._length, device = length, sim.qpos.device
    rows = sum(part[0].numel() for part in self._parts.values()) + 1  # and the reward
    self._states = torch.zeros(length, rows, num_envs, device=device)
    self._row = torch.zeros(1, dtype=torch.int64, device=device)  # of the next state
    self._count = torch.zeros(num_envs, dtype=torch.int64, device=device)  # states of the present episode
    self._stays = torch.zeros(num_envs, dtype=torch.bool, device=device)
    self._last = torch.zeros(num_envs, dtype=torch.int64, device=device)  # row of the last state that stays

  def add(self, reward: Tensor, valid: Tensor, ended: Tensor) -> None:
    """Follow a step with its reward [num_envs], before its reset: where it was valid and episodes ended."""
    parts = [part.flatten(1).T for part in self._parts.values()]
    new, old = torch.cat([*parts, reward.unsqueeze(0)]).float(), self._states.index_select(0, self._row)
    self._states.index_copy_(0, self._row, torch.where(self._stays, old, new))
    self._count += ~self._stays
    diverged = ~(valid | self._stays)
    self._last.masked_fill_(diverged, self._row[0])
    for name, kept in self._kept.items():
      kept.copy_(torch.where(diverged.view(-1, *[1] * (kept.ndim - 1)), self._varied[name], kept))
    self._stays |= diverged
    self._count.masked_fill_(ended & ~self._stays, 0)
    self._row.add_(1).remainder_(self._length)

  def take(self) -> TensorDict:
    """Return what led to it where environments diverged since the last call [n], of MOST at most.

    env: which one. states: by name [n, length of the trail, ...], the oldest first, of which the last `steps`
    are of its last episode; reward: of the step that led there. varied: its own fields of the model, by name.
    """
    envs = self._stays.nonzero()[:MOST, 0]
    ages = torch.arange(1, self._length + 1, device=envs.device)
    rows = (self._last[envs].unsqueeze(1) + ages) % self._length
    widths = [part[0].numel() for part in self._parts.values()]
    *parts, reward = self._states[rows, :, envs.unsqueeze(1)].split([*widths, 1], dim=2)
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
    self._count.masked_fill_(self._stays, 0)
    self._stays.zero_()
    return TensorDict(found, batch_size=[len(envs)])
