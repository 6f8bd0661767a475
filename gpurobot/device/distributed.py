"""Collectives over ranks, the only use of torch.distributed; with a single rank they do nothing."""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from gpurobot.device import numa
from gpurobot.device.process import usable_cores
from gpurobot.settings.config import ConfigError, suggestion

PATIENCE = timedelta(minutes=10)  # timeout of a collective
NOTICE = 10.0  # time after which a rank says that it waits for the others [s]
REMEDY = "start the ranks by torchrun, or unset WORLD_SIZE"
GRACE = 5.0  # time for ranks to report that they are alive after a failed collective [s]


@dataclass
class World:
  """The ranks of one training; every rank calls the same methods in the same order.

  If a rank dies or hangs, the collectives of the others fail: they name it and exit with status 1.
  """

  rank: int = 0  # among all ranks
  size: int = 1  # number of ranks
  local_rank: int = 0  # on this machine
  local_size: int = 1  # number of ranks on this machine
  store: dist.Store = field(default_factory=dist.HashStore, compare=False, repr=False)  # shared by the ranks
  collectives: int = field(default=0, compare=False)  # number of collectives so far

  @property
  def main(self) -> bool:
    """Whether this rank does the input and output."""
    return self.rank == 0

  def device(self, name: str, key: str = "device") -> torch.device:
    """Return this rank's device for auto, cpu, cuda or cuda:<index>; raise ConfigError if there is none.

    Each rank of a machine has its own GPU, so several ranks cannot use cuda:<index>. `key` names the
    setting in the message.
    """
    if name == "auto":
      name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
      device = torch.device(name)
    except RuntimeError:
      device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
      near = suggestion(name, ["auto", "cpu", "cuda"])
      raise ConfigError(f"{key}={name} is not one of auto, cpu, cuda, cuda:<index>{near}")
    if device.type == "cpu":
      return device
    if device.index is not None and self.local_size > 1:
      raise ConfigError(
        f"{key}={name} puts all {self.local_size} ranks of this machine on one GPU; write {key}=cuda"
      )
    index = self.local_rank if device.index is None else device.index
    if index >= torch.cuda.device_count():
      raise ConfigError(
        f"{key}={name}: this machine has {torch.cuda.device_count()} CUDA GPU(s); the nearest is 'cpu'"
      )
    return torch.device("cuda", index)

  def use(self, device: torch.device, threads: int | None) -> None:
    """Make torch and the physics of this rank use a device and `threads` CPU threads; None: its share.

    On a CPU the ranks of a machine are spread over its NUMA nodes.
    """
    if device.type == "cuda":
      torch.cuda.set_device(device)  # the device of events and graphs
    if threads is None and self.size > 1:  # torchrun sets one; for a single rank torch's default is right
      threads = max(1, usable_cores() // self.local_size)
    if device.type == "cpu":
      numa.bind(self.local_rank, self.local_size)
    if threads is not None:
      torch.set_num_threads(threads)

  def sum_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor [...] by its sum over all ranks, in place; return it."""
    self._run(dist.all_reduce, tensor)
    return tensor

  def sum_all_(self, tensors: Sequence[Tensor]) -> None:
    """Replace tensors [...] of one dtype by their sums over all ranks, in place, a collective per device."""
    if self.size == 1:
      return
    for device in dict.fromkeys(tensor.device for tensor in tensors):
      here = [tensor for tensor in tensors if tensor.device == device]
      total = self.sum_(torch.cat([tensor.flatten() for tensor in here]))
      for tensor, part in zip(here, total.split([tensor.numel() for tensor in here]), strict=True):
        tensor.copy_(part.view_as(tensor))

  def max_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor [...] by its element-wise maximum over all ranks, in place; return it."""
    self._run(dist.all_reduce, tensor, op=dist.ReduceOp.MAX)
    return tensor

  def broadcast_(self, tensor: Tensor) -> Tensor:
    """Replace a tensor [...] by the main rank's, in place; return it."""
    self._run(dist.broadcast, tensor, src=0)
    return tensor

  def broadcast_object(self, value: Any) -> Any:
    """Return the main rank's value, a small object."""
    box = [value]
    self._run(dist.broadcast_object_list, box, src=0)
    return box[0]

  def any_rank(self, *flags: bool) -> list[bool]:
    """Return for each flag whether it is set on any rank, by one collective."""
    if self.size == 1:
      return list(flags)
    return self.sum_(torch.tensor(flags, dtype=torch.int32)).bool().tolist()

  def gather(self, value: Any) -> list[Any]:
    """Return the values of all ranks, in rank order."""
    values = [value] * self.size
    self._run(dist.all_gather_object, values, value)
    return values

  def require_same(self, values: Mapping[str, Any]) -> None:
    """Exit with status 1 if the ranks have different values; the main rank prints their keys."""
    texts = self.gather({key: repr(value) for key, value in values.items()})
    keys = dict.fromkeys(key for rank in texts for key in rank)
    different = [key for key in keys if len({rank.get(key) for rank in texts}) > 1]
    if different:
      message = f"error: the ranks have different settings: {', '.join(different)}; start all with the same"
      raise SystemExit(message if self.main else 1)

  def _run(self, collective: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Run a collective and count it, unless there is only one rank."""
    if self.size == 1:
      return
    self.collectives += 1
    try:
      collective(*arguments, **options)
      return
    except RuntimeError as error:
      failure = error.with_traceback(None)  # its frames would keep the process group alive
    self._give_up(failure)

  def _give_up(self, error: RuntimeError) -> NoReturn:
    """Exit after a failed collective; the first surviving rank names the ranks without an answer.

    Leaving the group closes the connections to this rank, so the ranks that wait for it fail and get here.
    """
    dist.destroy_process_group()
    alive = self._roll_call()
    gone = [str(rank) for rank in range(self.size) if rank not in alive]
    if not gone:
      raise error
    if self.rank != min(alive):
      raise SystemExit(1)
    raise SystemExit(
      f"error: of {self.size} ranks, rank {' and rank '.join(gone)} died or hangs; its last output may "
      "say why; torchrun --max-restarts=<n> restarts the ranks from the last checkpoint"
    )

  def _roll_call(self) -> list[int]:
    """Return the ranks that report within GRACE; stop waiting once all have."""
    store = dist.PrefixStore("left", self.store)
    end = time.monotonic() + GRACE
    try:
      store.set(str(self.rank), "")
      while True:
        over = time.monotonic() >= end  # read before the last check: on a busy machine time passes in between
        alive = [rank for rank in range(self.size) if store.check([str(rank)])]
        if over or len(alive) == self.size:
          return alive
        time.sleep(0.1)
    except RuntimeError:  # the process that hosts the store is gone: the main rank, or torchrun there
      return list(range(1, self.size))

  def first(self, text: str) -> bool:
    """Return whether this rank is the first to print a text."""
    return self.store.add(f"said {text}", 1) == 1

  def recall(self) -> str | None:
    """Return the text that the main rank saved in an earlier attempt of this torchrun launch, if any.

    Other ranks get None.
    """
    note = _note()
    return note.read_text() if self.main and note and note.exists() else None

  def remember(self, text: str) -> None:
    """Save the main rank's text for later attempts, as torchrun --max-restarts restarts the ranks."""
    note = _note()
    if self.main and note:
      note.write_text(text)

  def close(self) -> None:
    """Leave the process group."""
    if self.size > 1:
      dist.destroy_process_group()


def start() -> World:
  """Join the ranks that torchrun started (gloo between CPUs, NCCL between GPUs), or run as a single rank.

  Raises ConfigError if torchrun's variables are incomplete or wrong, or if a rank does not come in time.
  """
  if "WORLD_SIZE" not in os.environ:
    return World()
  rank, size, local_rank, local_size = (
    _variable(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
  )
  world = World(rank, size, local_rank, local_size)
  if not (0 <= world.rank < world.size and 0 <= world.local_rank < world.local_size <= world.size):
    raise ConfigError(
      f"RANK={world.rank} of WORLD_SIZE={world.size}, LOCAL_RANK={world.local_rank} of LOCAL_WORLD_SIZE="
      f"{world.local_size} is no rank; {REMEDY}"
    )
  if world.size > 1:
    _join(world)
  return world


def _variable(name: str) -> int:
  """Return a variable that torchrun sets; raise ConfigError if it is missing or no number."""
  try:
    return int(os.environ[name])
  except KeyError:
    raise ConfigError(f"WORLD_SIZE is set, but {name} is not; {REMEDY}") from None
  except ValueError:
    raise ConfigError(f"{name}={os.environ[name]} is not a whole number; {REMEDY}") from None


def _join(world: World) -> None:
  """Wait for the other ranks, and say so if it takes long; raise ConfigError if PATIENCE is over."""
  for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in os.environ:
      raise ConfigError(f"WORLD_SIZE is set, but {name} is not; {REMEDY}")
  place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
  text = f"rank {world.rank} waits for the other ranks of {world.size} at {place}, {PATIENCE} at most"
  notice = threading.Timer(NOTICE, print, [text], {"file": sys.stderr, "flush": True})
  notice.daemon = True
  notice.start()
  try:
    store, *_ = next(dist.rendezvous("env://", timeout=PATIENCE))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    world.store = dist.PrefixStore(f"attempt {attempt}", store)  # torchrun may keep the store over restarts
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(
      backend, store=world.store, rank=world.rank, world_size=world.size, timeout=PATIENCE
    )
  except (RuntimeError, ValueError) as error:
    reason = str(error).partition("\n")[0].rstrip(".")
    raise ConfigError(
      f"rank {world.rank} could not join the other ranks of {world.size} at {place} ({reason}); {REMEDY}"
    ) from error
  finally:
    notice.cancel()


def _note() -> Path | None:
  """Return the file of `World.remember`, in torchrun's log folder, which exists for the whole launch."""
  errors = os.environ.get("TORCHELASTIC_ERROR_FILE", os.devnull)  # <folder>/attempt_<n>/<rank>/error.json
  return None if errors == os.devnull else Path(errors).parents[2] / "gpurobot.txt"
