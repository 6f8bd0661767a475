"""CUDA graphs: a piece of an iteration is recorded once and replayed; on a CPU it is just called."""

import contextlib
import warnings
from collections.abc import Callable

import torch

WARM_UPS = 2  # calls before one is recorded: memory is made in the first, and the second compiles
Piece = Callable[[], None]


class GraphRecorder:
  """Records graphs for one rank, on a stream of its own; all of them take their passing memory from one pool.

  They can share it because none of them leaves there what another one reads, and no two run at once.
  """

  def __init__(
    self, device: torch.device, gather: Callable[[str], list[str]] = lambda failure: [failure]
  ) -> None:
    """Record on a GPU; gather: returns every rank's text, so that the ranks agree on what has failed."""
    self._stream, self._gather = torch.cuda.Stream(device), gather
    self._pool = torch.cuda.graph_pool_handle()

  def run(self, function: Piece) -> None:
    """Run a function as it is on the stream that will record it: libraries prepare for each stream."""
    current = torch.cuda.current_stream(self._stream.device)
    self._stream.wait_stream(current)
    with torch.cuda.stream(self._stream):
      function()
    current.wait_stream(self._stream)

  def record(self, function: Piece) -> torch.cuda.CUDAGraph | None:
    """Return the graph of a function, or None where recording failed on any rank, which a warning tells.

    Nothing but the attempt is lost then: no operation has run, and torch's state is what it was. Every rank
    calls, and all of them get a graph or none does.
    """
    graph, failure = torch.cuda.CUDAGraph(), ""
    generator = torch.cuda.default_generators[self._stream.device.index]
    state = generator.clone_state()
    # Only this thread's calls can spoil it: others, such as NCCL's watchdog, go on meanwhile.
    capture = torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local")
    try:
      # The outer context ends in any case; the one in `capture` stays open where ending the capture fails.
      with torch.cuda.stream(self._stream), capture:
        function()
    except RuntimeError as error:
      failure = str(error) or type(error).__name__
      # Where ending the capture fails, torch leaves generator and pool in it: it would refuse random numbers,
      # and every later recording in the same pool.
      generator.graphsafe_set_state(state)
      with contextlib.suppress(RuntimeError):  # the pool is left already where only the function failed
        torch._C._cuda_endAllocateToPool(self._stream.device.index, self._pool)
    failures = {rank: text for rank, text in enumerate(self._gather(failure)) if text}
    if not failures:
      return graph
    rank, text = next(iter(failures.items()))
    name = function.__name__.strip("_")
    warnings.warn(f"no CUDA graph of '{name}' (rank {rank}: {text}); graphs=off does without", stacklevel=4)
    return None


class Graph:
  """A function of static memory: it takes nothing, returns nothing, and writes its results in place.

  With a recorder its first calls run as they are, which builds what is built once; the third is recorded, and
  replayed then and ever after: the same kernels on the same memory, hence the same numbers, without Python
  launching each. So the function decides nothing by what Python keeps: it would be decided once and for all.
  Where recording fails, calls go on as they are.
  """

  def __init__(self, function: Piece, recorder: GraphRecorder | None) -> None:
    """Wrap a function; without a recorder: only call it."""
    self.function, self._recorder = function, recorder
    self._calls = 0
    self._graph: torch.cuda.CUDAGraph | None = None

  @property
  def recorded(self) -> bool:
    """Tell whether calls replay a graph."""
    return self._graph is not None

  def __call__(self) -> None:
    """Do the work once."""
    self._calls += 1
    if self._recorder and self._calls <= WARM_UPS:
      self._recorder.run(self.function)
      return
    if self._recorder and self._calls == WARM_UPS + 1:
      self._graph = self._recorder.record(self.function)
    if self._graph:
      self._graph.replay()
    else:
      self.function()
