"""CUDA graphs: capture of a piece of an iteration, and its replay; on a CPU the piece is called."""

import contextlib
import warnings
from collections.abc import Callable

import torch

from gpurobot.device.python_state import NEAR, difference, python_state

WARM_UPS = 2  # calls before the capture: the first allocates memory, the second compiles
Piece = Callable[[], None]


class GraphRecorder:
  """Recorder of one rank's graphs, on a separate stream, with one pool for their temporary memory.

  The graphs can share the pool: none leaves data there that another reads, and no two run at once.
  """

  def __init__(
    self, device: torch.device, gather: Callable[[str], list[str]] = lambda failure: [failure]
  ) -> None:
    """Record on a GPU; `gather` returns the texts of all ranks, so that they agree on what has failed."""
    self._stream, self._gather = torch.cuda.Stream(device), gather
    self._pool = torch.cuda.graph_pool_handle()

  def run(self, function: Piece) -> None:
    """Run a function on the stream of the later capture: libraries initialise once per stream."""
    current = torch.cuda.current_stream(self._stream.device)
    self._stream.wait_stream(current)
    with torch.cuda.stream(self._stream):
      function()
    current.wait_stream(self._stream)

  def record(self, function: Piece, **watched: object) -> torch.cuda.CUDAGraph | None:
    """Return the graph of a function; if the capture fails on any rank, warn and return None on all of them.

    A change of Python state in the `watched` objects is a failure. A failed capture has no side effects: no
    operation has run, and torch's state is restored. Every rank calls.
    """
    graph, failure = torch.cuda.CUDAGraph(), ""
    before = python_state(watched, NEAR)  # deeper, a library may store the stream and the like
    generator = torch.cuda.default_generators[self._stream.device.index]
    state = generator.clone_state()
    # Only calls of this thread can invalidate the capture: others, such as NCCL's watchdog, go on.
    capture = torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local")
    try:
      # The outer context always ends; the one in `capture` stays open if ending the capture fails.
      with torch.cuda.stream(self._stream), capture:
        function()
      if path := difference(before, python_state(watched, NEAR)):
        failure = f"{path} changes from call to call, keep it in a tensor"
    except RuntimeError as error:
      failure = str(error) or type(error).__name__
      # If ending the capture fails, torch leaves generator and pool in capture mode: random numbers and every
      # later capture in the same pool would fail.
      generator.graphsafe_set_state(state)
      with contextlib.suppress(RuntimeError):  # if only the function failed, the pool is closed already
        torch._C._cuda_endAllocateToPool(self._stream.device.index, self._pool)
    failures = {rank: text for rank, text in enumerate(self._gather(failure)) if text}
    if not failures:
      return graph
    rank, text = next(iter(failures.items()))
    name = function.__name__.strip("_")
    warnings.warn(f"no CUDA graph of '{name}' (rank {rank}: {text}); write graphs=off", stacklevel=4)
    return None


class Graph:
  """A function on static memory: it takes nothing, returns nothing, and writes its results in place.

  With a recorder the first WARM_UPS calls run the function directly, which allocates its memory. The next
  call captures a graph, and all calls from then on replay it: the same kernels on the same memory, hence the
  same numbers, without a launch from Python for each. So no branch of the function may depend on Python
  state: it would be fixed at the capture. If the capture fails, calls keep running the function directly.
  """

  def __init__(self, function: Piece, recorder: GraphRecorder | None, **watched: object) -> None:
    """Wrap a function; without a recorder calls run it directly. watched: objects, by name, see `Tape`."""
    self.function, self._recorder, self._watched = function, recorder, watched
    self._calls = 0
    self._graph: torch.cuda.CUDAGraph | None = None

  @property
  def recorded(self) -> bool:
    """Whether calls replay a graph."""
    return self._graph is not None

  def __call__(self) -> None:
    """Run the function once, directly or by replay."""
    self._calls += 1
    if self._recorder and self._calls <= WARM_UPS:
      self._recorder.run(self.function)
      return
    if self._recorder and self._calls == WARM_UPS + 1:
      self._graph = self._recorder.record(self.function, **self._watched)
    if self._graph:
      self._graph.replay()
    else:
      self.function()
