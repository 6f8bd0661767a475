"""The only place that knows torch.distributed: sums and agreements over ranks, the identity when alone."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from gpurobot.config import ConfigError, nearest_word

PATIENCE = timedelta(minutes=10)  # that a rank waits in a collective for one that hangs
GRACE = 5.0  # that ranks have to show, after a failed collective, that they are left [s]


@dataclass
class World:
  """The ranks of one training; every rank calls the same methods in the same order.

  Where a rank dies or hangs, the collectives of the others fail: they name it and exit with status 1.
  """

  rank: int = 0  # among all ranks
  size: int = 1
  local_rank: int = 0  # on this machine
  local_size: int = 1
  store: dist.Store = field(default_factory=dist.HashStore, compare=False, repr=False)  # notes to each other
  collectives: int = field(default=0, compare=False)  # so far

  @property
  def main(self) -> bool:
    """Tell whether this rank does the input and output."""
    return self.rank == 0

  def device(self, name: str) -> torch.device:
    """Return this rank's device for auto, cpu, cuda or cuda:<index>; raise ConfigError if there is none.

    Each rank of a machine has a GPU of its own, so that several cannot name one.
    """
    if name == "auto":
      name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
      device = torch.device(name)
    except RuntimeError:
      device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
      near = nearest_word(name, ["auto", "cpu", "cuda"])
      raise ConfigError(f"device={name} is not one of auto, cpu, cuda, cuda:<index>; the nearest is '{near}'")
    if device.type == "cpu":
      return device
    if device.index is not None and self.local_size > 1:
      raise ConfigError(
        f"device={name} would put all {self.local_size} ranks of this machine on one GPU; write device=cuda"
      )
    index = self.local_rank if device.index is None else device.index
    if index >= torch.cuda.device_count():
      raise ConfigError(
        f"device={name}: this machine has {torch.cuda.device_count()} CUDA GPU(s); the nearest is 'cpu'"
      )
    return torch.device("cuda", index)

  def use(self, device: torch.device, threads: int | None) -> None:
    """Let this rank's torch and physics use a device and so many CPU threads; None: its share of them."""
    if device.type == "cuda":
      torch.cuda.set_device(device)  # where events and graphs are made
    if threads is None and self.size > 1:  # torchrun would allow one; alone, torch's own choice is right
      threads = max(1, len(os.sched_getaffinity(0)) // self.local_size)
    if threads is not None:
      torch.set_num_threads(threads)

  def sum_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor by its sum over all ranks."""
    self._run(dist.all_reduce, tensor)
    return tensor

  def sum_all_(self, tensors: Sequence[Tensor]) -> None:
    """Replace tensors of one type by their sums over all ranks, in one collective."""
    if self.size > 1:
      total = self.sum_(torch.cat([tensor.flatten() for tensor in tensors]))
      for tensor, part in zip(tensors, total.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))

  def max_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor by its largest values over all ranks."""
    self._run(dist.all_reduce, tensor, op=dist.ReduceOp.MAX)
    return tensor

  def broadcast_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor by the main rank's."""
    self._run(dist.broadcast, tensor, src=0)
    return tensor

  def broadcast_object(self, value: Any) -> Any:
    """Return the main rank's value of a small object."""
    box = [value]
    self._run(dist.broadcast_object_list, box, src=0)
    return box[0]

  def any_rank(self, *flags: bool) -> list[bool]:
    """Tell for each flag whether it is set on any rank: one collective for all of them."""
    if self.size == 1:
      return list(flags)
    return self.sum_(torch.tensor(flags, dtype=torch.int32)).bool().tolist()

  def gather(self, value: Any) -> list[Any]:
    """Return every rank's value, in the order of the ranks."""
    values = [value] * self.size
    self._run(dist.all_gather_object, values, value)
    return values

  def _run(self, collective: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Run a collective and count it, unless this rank is alone."""
    if self.size == 1:
      return
    self.collectives += 1
    try:
      collective(*arguments, **options)
      return
    except RuntimeError as error:
      failure = error.with_traceback(None)  # its frames would keep the group of ranks alive
    self._give_up(failure)

  def _give_up(self, error: RuntimeError) -> NoReturn:
    """Exit after a failed collective; the first of the ranks that are left names those that are not.

    Leaving the group closes the connections to this rank, so that whoever waits for it comes here too.
    """
    dist.destroy_process_group()
    left = self._roll_call()
    gone = [str(rank) for rank in range(self.size) if rank not in left]
    if not gone:
      raise error
    if self.rank != min(left):
      raise SystemExit(1)
    raise SystemExit(
      f"error: of {self.size} ranks, rank {' and rank '.join(gone)} died or hangs; what it printed last may "
      "say why, and torchrun --max-restarts=<n> would continue from the last checkpoint"
    )

  def _roll_call(self) -> list[int]:
    """Return the ranks that show up within GRACE, or all as soon as they have done so."""
    store = dist.PrefixStore("left", self.store)
    end = time.monotonic() + GRACE
    left: list[int] = []
    try:
      store.set(str(self.rank), "")
      while len(left) < self.size and time.monotonic() < end:
        time.sleep(0.1)
        left = [rank for rank in range(self.size) if store.check([str(rank)])]
    except RuntimeError:  # who kept the store is gone: the main rank, or torchrun on its machine
      left = list(range(1, self.size))
    return left

  def first(self, text: str) -> bool:
    """Tell whether this rank is the first that wants to say a text."""
    return self.store.add(f"said {text}", 1) == 1

  def recall(self) -> str | None:
    """Return, on the main rank, what it kept in an earlier attempt of this launch of torchrun, if any."""
    note = _note()
    return note.read_text() if self.main and note and note.exists() else None

  def remember(self, text: str) -> None:
    """Keep the main rank's text for later attempts: torchrun --max-restarts starts the ranks anew."""
    note = _note()
    if self.main and note:
      note.write_text(text)

  def close(self) -> None:
    """Leave the group of ranks."""
    if self.size > 1:
      dist.destroy_process_group()


def start() -> World:
  """Join the ranks that torchrun started (gloo between CPUs, NCCL between GPUs), or be the only one."""
  if "WORLD_SIZE" not in os.environ:
    return World()
  rank, size, local_rank, local_size = (
    int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
  )
  world = World(rank, size, local_rank, local_size)
  if world.size > 1:
    store, *_ = next(dist.rendezvous("env://", timeout=PATIENCE))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    world.store = dist.PrefixStore(f"attempt {attempt}", store)  # torchrun may keep the store over restarts
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=world.store, rank=rank, world_size=size, timeout=PATIENCE)
  return world


def _note() -> Path | None:
  """Return the file of `World.remember`: in torchrun's folder of logs, which lasts from launch to end."""
  errors = os.environ.get("TORCHELASTIC_ERROR_FILE", os.devnull)  # <folder>/attempt_<n>/<rank>/error.json
  return None if errors == os.devnull else Path(errors).parents[2] / "gpurobot.txt"
