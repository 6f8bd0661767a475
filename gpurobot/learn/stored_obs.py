"""Observations in the ring of a replay buffer: as they are, or in fewer bits."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from gpurobot.algorithm_config import Storage
from gpurobot.learn.env import VecEnv, block_names, images_of
from gpurobot.learn.normalize import OUTLIER, Moments

KINDS = {
  Storage.float32: torch.float32,
  Storage.float16: torch.float16,
  Storage.bf16: torch.bfloat16,
  Storage.uint8: torch.uint8,
}
LEVELS = 127  # of uint8 on each side of the mean
NEAR = 0.5  # the levels of uint8 are even up to about here, and spread out beyond [standard deviations]
SPREAD = math.asinh(OUTLIER / NEAR)  # so that the last level is at OUTLIER


def encode(deviation: Tensor, kind: torch.dtype) -> Tensor:
  """Return deviations [...], in standard deviations, as numbers of a type in KINDS; nan is 0 in uint8."""
  if kind is torch.uint8:
    level = (deviation.nan_to_num(0) / NEAR).asinh_().mul_(LEVELS / SPREAD).clamp_(-LEVELS, LEVELS)
    return level.round_().add_(LEVELS).to(kind)
  most = torch.finfo(kind).max
  return deviation.clamp(-most, most).to(kind)


def decode(number: Tensor) -> Tensor:
  """Return the deviations [...], float32, that encoded numbers stand for."""
  if number.dtype is torch.uint8:
    return number.to(torch.float32).sub_(LEVELS).mul_(SPREAD / LEVELS).sinh_().mul_(NEAR)
  return number.to(torch.float32)


def take(memory: Tensor, rows: Tensor, envs: Tensor) -> Tensor:
  """Return memory[rows, envs] of a tensor [length, num_envs, ...]; one flat index takes half the time."""
  index = rows * memory.shape[1] + envs
  return memory.flatten(0, 1).index_select(0, index.flatten()).view(*index.shape, *memory.shape[2:])


class StoredObs:
  """Codec of observations: which columns of each group lie in the ring in fewer bits, and how.

  Those are kept as deviations from the mean in standard deviations, by the moments of that time; each row
  has its moments beside it. All ranks have the same moments, and so the same numbers. Images lie there as
  they are.
  """

  def __init__(self, env: VecEnv, storage: Storage = Storage.float32, blocks: Collection[str] = ()) -> None:
    """Keep the named blocks of observations in the type `storage`, or all if none are named."""
    self.kind, self._num_envs, self._device = KINDS[storage], env.num_envs, env.device
    self.images, names = images_of(env), block_names(env)
    self._columns: dict[str, tuple[Tensor, Tensor]] = {}  # by group: those kept as they are, and the others
    self._order: dict[str, Tensor] = {}  # by group: where each column is among the two, one after the other
    for group, width in env.obs_dims.items():
      rounded = storage is not Storage.float32
      chosen = [rounded and (not blocks or name in blocks) for name in names.get(group, [""] * width)]
      columns = sorted(range(width), key=chosen.__getitem__)  # those kept as they are first
      order = sorted(range(width), key=columns.__getitem__)
      raw, small = torch.tensor(columns, device=env.device).split([width - sum(chosen), sum(chosen)])
      self._columns[group], self._order[group] = (raw, small), torch.tensor(order, device=env.device)

  def allocate(self, length: int) -> dict[str, Any]:
    """Return zeros for `length` rows.

    obs: by group [length, num_envs, columns kept as they are], and images. small: by group [length, num_envs,
    others]. unit: by group [length, 2, others], mean and standard deviation. A group without others has no
    such entry.
    """
    memory: dict[str, dict[str, Tensor]] = {"obs": {}, "small": {}, "unit": {}}
    for group, (raw, small) in self._columns.items():
      memory["obs"][group] = self._zeros(length, self._num_envs, len(raw))
      if len(small):
        memory["small"][group] = self._zeros(length, self._num_envs, len(small), kind=self.kind)
        memory["unit"][group] = self._zeros(length, 2, len(small))
    for name, image in self.images.items():
      memory["obs"][name] = self._zeros(length, self._num_envs, *image.shape, kind=image.dtype)
    return {name: part for name, part in memory.items() if part}

  @property
  def row_bytes(self) -> int:
    """Memory of a row [bytes]."""
    columns = [(len(raw), len(small)) for raw, small in self._columns.values()]
    numbers = sum(
      self._num_envs * (4 * raw + self.kind.itemsize * small) + 8 * small for raw, small in columns
    )
    return numbers + self._num_envs * sum(image.bytes for image in self.images.values())

  def _zeros(self, *shape: int, kind: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=kind, device=self._device)

  def write(
    self, memory: TensorDict, row: Tensor, obs: Mapping[str, Tensor], moments: Mapping[str, Moments]
  ) -> None:
    """Write raw groups [num_envs, width] and images to a row [1]."""
    for name in self.images:
      memory["obs", name].index_copy_(0, row, obs[name].unsqueeze(0))
    for group, (raw, small) in self._columns.items():
      if not len(small):
        memory["obs", group].index_copy_(0, row, obs[group].unsqueeze(0))
        continue
      memory["obs", group].index_copy_(0, row, obs[group].index_select(1, raw).unsqueeze(0))
      unit = torch.stack([part.to(torch.float32).index_select(0, small) for part in moments[group].unit])
      deviation = (obs[group].index_select(1, small) - unit[0]) / unit[1]
      memory["small", group].index_copy_(0, row, encode(deviation, self.kind).unsqueeze(0))
      memory["unit", group].index_copy_(0, row, unit.unsqueeze(0))

  def read(self, memory: TensorDict, rows: Tensor, envs: Tensor) -> dict[str, Tensor]:
    """Return the raw groups [b, width] and images in rows [b] of environments [b]."""
    found = {group: take(raw, rows, envs) for group, raw in memory["obs"].items()}
    for group, numbers in memory.get("small", {}).items():
      shift, scale = memory["unit", group].index_select(0, rows).unbind(1)
      small = decode(take(numbers, rows, envs)) * scale + shift
      found[group] = torch.cat([found[group], small], 1).index_select(1, self._order[group])
    return found
