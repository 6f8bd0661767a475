"""Number of CPU threads of torch for a piece of work."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gpurobot.device.tape import repeated

ENVS_PER_THREAD = 8192  # environments for which an operation on all of them is worth another thread


def enough(local_envs: int) -> int:
  """Return the number of threads worth using for operations on `local_envs` environments, at most torch's.

  With fewer environments a second thread gains nothing, and if other programs keep the cores busy every
  operation waits for it: with 4,096 environments Ant's task code took 32 ms per step on two threads, 8 ms on
  one.
  """
  return min(max(1, local_envs // ENVS_PER_THREAD), torch.get_num_threads())


@contextmanager
def use(count: int) -> Iterator[None]:
  """Set torch's number of threads to `count` in the block."""
  before = torch.get_num_threads()
  _set(count)
  try:
    yield
  finally:
    _set(before)


@repeated
def _set(count: int) -> None:
  torch.set_num_threads(count)
