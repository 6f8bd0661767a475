"""The only place that knows torch.distributed: sums and agreements over ranks, the identity when alone."""

import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from gpurobot.config import ConfigError, nearest


@dataclass(frozen=True)
class World:
  """The ranks of one training; every rank calls the same methods in the same order."""

  rank: int = 0  # among all ranks
  size: int = 1
  local_rank: int = 0  # on this machine
  local_size: int = 1

  @property
  def main(self) -> bool:
    """Tell whether this rank does the input and output."""
    return self.rank == 0

  def device(self, name: str) -> torch.device:
    """Return this rank's device for auto, cpu, cuda or cuda:<index>; raise ConfigError if there is none."""
    if name == "auto":
      name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
      device = torch.device(name)
    except RuntimeError:
      device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
      near = nearest(name, ["auto", "cpu", "cuda"])
      raise ConfigError(f"device={name} is not one of auto, cpu, cuda, cuda:<index>; the nearest is '{near}'")
    if device.type == "cpu":
      return device
    index = self.local_rank if device.index is None else device.index
    if index >= torch.cuda.device_count():
      raise ConfigError(
        f"device={name}: this machine has {torch.cuda.device_count()} CUDA GPU(s); the nearest is 'cpu'"
      )
    return torch.device("cuda", index)

  def use_threads(self, threads: int | None) -> None:
    """Let this rank's torch and physics use so many CPU threads; None: its share of the cores."""
    if threads is None and self.size > 1:  # torchrun would allow one; alone, torch's own choice is right
      threads = max(1, len(os.sched_getaffinity(0)) // self.local_size)
    if threads is not None:
      torch.set_num_threads(threads)

  def sum_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor by its sum over all ranks."""
    if self.size > 1:
      dist.all_reduce(tensor)
    return tensor

  def broadcast_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor by the main rank's."""
    if self.size > 1:
      dist.broadcast(tensor, src=0)
    return tensor

  def same(self, value: Any) -> Any:
    """Return the main rank's value of a small object."""
    box = [value]
    if self.size > 1:
      dist.broadcast_object_list(box, src=0)
    return box[0]

  def agree(self, *flags: bool) -> list[bool]:
    """Tell for each flag whether it is set on any rank."""
    if self.size == 1:
      return list(flags)
    return self.sum_(torch.tensor(flags, dtype=torch.int32)).bool().tolist()

  def gather(self, value: Any) -> list[Any]:
    """Return every rank's value, in the order of the ranks."""
    if self.size == 1:
      return [value]
    values: list[Any] = [None] * self.size
    dist.all_gather_object(values, value)
    return values

  def close(self) -> None:
    """Leave the group of ranks."""
    if self.size > 1:
      dist.destroy_process_group()


def start() -> World:
  """Join the ranks that torchrun started (gloo between CPUs, NCCL between GPUs), or be the only one."""
  if "WORLD_SIZE" not in os.environ:
    return World()
  world = World(
    int(os.environ["RANK"]),
    int(os.environ["WORLD_SIZE"]),
    int(os.environ["LOCAL_RANK"]),
    int(os.environ["LOCAL_WORLD_SIZE"]),
  )
  if world.size > 1:
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=world.rank, world_size=world.size)
  return world
