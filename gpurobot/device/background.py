"""Second thread of a rank, in which environments step while the learner computes."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch

from gpurobot.device import threads


class Background:
  """A thread with CPU threads of its own for torch, and on a GPU with a stream of its own."""

  def __init__(self, device: torch.device, count: int) -> None:
    """Run functions on a device, with `count` CPU threads."""
    self._pool, self._threads, self._device = ThreadPoolExecutor(1), count, device
    self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

  @contextlib.contextmanager
  def running(self, function: Callable[[], None], concurrent: bool = True) -> Iterator[None]:
    """Run a function while the block runs, and leave the block when both have ended.

    It sees all work before the block, and work after the block sees its results. The two must not share
    memory that one of them writes. If not `concurrent`, the function ends before the block begins.
    """
    if self._stream:
      self._stream.wait_stream(torch.cuda.current_stream(self._device))
    job = self._pool.submit(self._run, function)
    if not concurrent:
      job.result()
    try:
      yield
    finally:
      job.exception()  # waits, so that the function does not outlast an error in the block
    job.result()
    if self._stream:
      torch.cuda.current_stream(self._device).wait_stream(self._stream)

  def _run(self, function: Callable[[], None]) -> None:
    with threads.use(self._threads), torch.cuda.stream(self._stream):
      function()
