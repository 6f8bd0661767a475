"""Ranks as processes of their own, without torchrun: forked from one process that has torch, hence quick."""

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["train", "tests.gpurobot.toy", "tasks.ant", "tasks.cartpole"])
HANG = 600.0  # a launch that takes so long hangs, however busy the machine is [s]


def launch(size: int, output: Path, work: Callable[..., Any], *args: Any) -> list[int]:
  """Do work(*args) on every rank; return their exit statuses, minus the signal of one that was killed.

  What the ranks print goes to the file `output`. Those that are left after HANG are killed.
  """
  store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # as torchrun keeps it for them
  output.write_text("")
  ranks = [
    _FORKS.Process(target=_run, args=(rank, size, store.port, output, work, args)) for rank in range(size)
  ]
  for process in ranks:
    process.start()
  end = time.monotonic() + HANG
  for process in ranks:
    process.join(max(0.0, end - time.monotonic()))
  for process in ranks:
    process.kill()
    process.join()
  return [int(process.exitcode or 0) for process in ranks]


def _run(rank: int, size: int, port: int, output: Path, work: Callable[..., Any], args: tuple) -> None:
  """Be one rank, as torchrun would start it."""
  named = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size}
  named |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True}
  os.environ.update({name: str(value) for name, value in named.items()})
  with output.open("a") as file:
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
  work(*args)
