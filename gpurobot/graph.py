"""CUDA graphs: a piece of an iteration is recorded once and replayed; on a CPU it is just called."""

import warnings
from collections.abc import Callable

import torch

WARM_UPS = 2  # calls before one is recorded: memory is made in the first, and the second compiles


class Graph:
  """A function of static memory: it takes nothing, returns nothing, and writes its results in place.

  On CUDA its first calls run as they are, which builds what is built once; the third is recorded, and
  replayed then and ever after: the same kernels on the same memory, hence the same numbers, without Python
  launching each. Where recording fails a warning says so, and calls go on as they are.
  """

  def __init__(self, function: Callable[[], None], enabled: bool) -> None:
    """Wrap a function; not enabled: only call it."""
    self.function, self.enabled = function, enabled
    self._calls = 0
    self._graph: torch.cuda.CUDAGraph | None = None

  def __call__(self) -> None:
    """Do the work once."""
    if self.enabled and self._calls >= WARM_UPS and self._graph is None:
      self._record()
    self._calls += 1
    if self._graph is None:
      self.function()
    else:
      self._graph.replay()

  def _record(self) -> None:
    graph = torch.cuda.CUDAGraph()
    try:
      with torch.cuda.graph(graph):
        self.function()
    except RuntimeError as error:
      self.enabled = False
      name = self.function.__name__.strip("_")
      warnings.warn(f"no CUDA graph of '{name}' ({error}); graphs=off does without", stacklevel=3)
    else:
      self._graph = graph
