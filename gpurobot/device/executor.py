"""Executor of an iteration's pieces: compiled, captured as CUDA graphs, or called directly."""

from collections.abc import Callable
from typing import TypeVar

import torch

from gpurobot.device.compiler import Compiler
from gpurobot.device.graph import Graph, GraphRecorder, Piece
from gpurobot.device.tape import Tape
from gpurobot.settings.config import ConfigError, Switch, TrainConfig

T = TypeVar("T")


class Executor:
  """Executor of pieces of an iteration: functions on static memory without collectives, see `Graph`."""

  def __init__(self, config: TrainConfig, device: torch.device, gather: Callable[[str], list[str]]) -> None:
    """Set up according to config.compile and config.graphs; `gather` returns the texts of all ranks.

    Raises ConfigError if one of them is `on` but does not work here.
    """
    if config.graphs is Switch.on and device.type != "cuda":
      raise ConfigError(f"graphs=on needs a CUDA device, not {device.type}; write graphs=auto")
    record = config.graphs is not Switch.off and device.type == "cuda"
    self._recorder = GraphRecorder(device, gather) if record else None
    self._compiler = Compiler(config.compile, device)
    plain = config.compile is not Switch.on  # what is compiled is no list of torch's operations
    self._tapes = plain and config.graphs is not Switch.off and device.type == "cpu"
    self._graphs: dict[Piece, Piece] = {}
    self._watched: dict[str, object] = {}  # what no piece may change, but for its tensors

  @property
  def prepares(self) -> bool:
    """Whether the first calls of a piece compile or capture it, which makes them slower."""
    return self._compiler.used or self._recorder is not None

  def compiled(self, function: Callable[..., T]) -> Callable[..., T]:
    """Return a compiled function, or the function itself if compilation is off; see `Compiler`."""
    return self._compiler(function)

  def taped(self, function: Callable[..., None], **watched: object) -> Callable[..., None]:
    """Return a function of tensors that is part of a piece, on a CPU as a `Tape`; both watch objects."""
    self._watched |= watched
    return Tape(function, watched) if self._tapes else function

  def run(self, piece: Piece, *, tape: bool = False) -> None:
    """Run a piece, compiled as a whole; with `tape` it is of torch's operations alone, see `Tape`."""
    self._graph(piece, self._compiler(piece), tape)()

  def run_parts(self, piece: Piece, *, tape: bool = False) -> None:
    """Run a piece that compiles its parts itself, each by `compiled`; `tape` as for `run`."""
    self._graph(piece, piece, tape)()

  def _graph(self, piece: Piece, function: Piece, tape: bool) -> Piece:
    """Return the graph or the tape of a piece, cached by piece."""
    if piece not in self._graphs:
      taped = tape and self._tapes
      self._graphs[piece] = Tape(function) if taped else Graph(function, self._recorder, **self._watched)
    return self._graphs[piece]
