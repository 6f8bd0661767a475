"""The number of CPU threads that torch uses for a piece of work."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

ENVS_PER_THREAD = 8192  # from which on an operation on all environments is worth another thread


def enough(local_envs: int) -> int:
  """Return the threads that pay for operations on so many environments, of those that torch may use.

  Below, a second thread gains nothing, and where other programs keep the cores busy every operation waits for
  it: with 4,096 environments Ant's own code then took 32 ms per step on two threads, 8 ms on one.
  """
  return min(max(1, local_envs // ENVS_PER_THREAD), torch.get_num_threads())


@contextmanager
def use(count: int) -> Iterator[None]:
  """Let torch use `count` threads within the block."""
  before = torch.get_num_threads()
  torch.set_num_threads(count)
  try:
    yield
  finally:
    torch.set_num_threads(before)
