"""Schedule of a tape's operations: which of them become C++ functions, and in what order all are called.

The operations are put into phases, one after the other. In one phase all are operations of rows, see
`program.py`, in the next one all others. Each operation comes as early as what it needs allows, so that there
are few phases. Whatever is no operation of torch stays where it is, between those before and after it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._ops import OpOverload

from gpurobot.device import process
from gpurobot.device.calls import Call, Fused, address_of, memory_of, place_of, tensors_of
from gpurobot.fusion import operations
from gpurobot.fusion.program import Program, UnfitError
from gpurobot.fusion.text import LANES, PREAMBLE, Text, constants

LEAST = 3  # operations of a function; fewer take less time in torch
Array = NDArray[np.int64]


class Functions(Protocol):
  """C++ functions that are compiled together, from the `Text.body` of each."""

  @property
  def built(self) -> bool:
    """Whether they are compiled, by this process or an earlier one."""

  def build(self, python: Callable[..., tuple[list[str], dict[str, str]]]) -> Callable[[], bool]:
    """Start to compile them in the background, by a process that `python` describes; see `process.python`.

    Returns what tells whether that has ended.
    """

  def launch(self, index: int, blocks: int, arrays: Sequence[Array]) -> Callable[[], None]:
    """Return what calls a function for all blocks of rows: with the arrays base, place and number."""


Builder = Callable[[str, Sequence[str]], Functions]  # of the preamble of the texts, and the texts


class RowFusion:
  """Fusion of calls for a number of rows, by functions that a builder compiles; a `calls.Fusion`."""

  def __init__(self, rows: int, builder: Builder, builds: bool = True) -> None:
    """Fuse for so many rows; builds: whether this process builds what is missing, or another one does."""
    self.rows, self._builder, self._builds = rows, builder, builds
    self._ended: Callable[[], bool] = _never

  def built(self) -> bool:
    """Return whether the functions that were started have been built."""
    return self._ended()

  def __call__(
    self, calls: Sequence[Call], fresh: set[int], given: Sequence[Tensor], build: bool
  ) -> Fused | None:
    """Fuse calls."""
    if _overlap(calls):  # what depends on what is not known
      return None
    schedule = _Schedule(calls, self.rows, fresh, given)
    texts = {phase: Text(program) for phase, program in schedule.programs().items()}
    if not texts:
      return None
    functions = self._builder(PREAMBLE, [text.body for text in texts.values()])
    if not functions.built:
      self._ended = self._start(functions) if build else _never
      return None
    origin = {address_of(tensor): tensor for tensor in [*reversed(schedule.origins()), *given]}
    moving = (fresh - schedule.static) | memory_of(given)
    fused = {
      phase: _call(functions, index, self.rows // LANES, text, origin, moving)
      for index, (phase, text) in enumerate(texts.items())
    }
    return Fused(schedule.order(fused), schedule.static)

  def _start(self, functions: Functions) -> Callable[[], bool]:
    return functions.build(process.python) if self._builds else lambda: functions.built


def _never() -> bool:
  return False


def _overlap(calls: Sequence[Call]) -> bool:
  """Return whether two memories of calls that have addresses of their own share bytes."""
  tensors = tensors_of([(call.args, call.kwargs, call.result) for call in calls])
  ends = {address_of(own): address_of(own) + own.untyped_storage().nbytes() for own in tensors}
  return any(end > begin for (_, end), (begin, _) in pairwise(sorted(ends.items())))


def _call(
  functions: Functions, index: int, blocks: int, text: Text, origin: Mapping[int, Tensor], moving: set[int]
) -> Call:
  """Return the call of a function; origin: a tensor of each memory; moving: memory that replays replace."""
  tensors = {memory: origin[memory] for memory in text.bases}
  moved = {memory: tensor for memory, tensor in tensors.items() if memory in moving}
  begins = {memory: tensor.storage_offset() * tensor.element_size() for memory, tensor in moved.items()}
  base = np.array([0 if memory in moved else memory for memory in text.bases])
  place = np.array([cell.offset - begins.get(cell.memory, 0) for cell in text.places])
  launch = functions.launch(index, blocks, (base, place, constants(text.numbers)))
  indices = [text.bases[memory] for memory in moved]
  fixed = [tensor for memory, tensor in tensors.items() if memory not in moved]  # which it keeps alive

  def run(*given: Tensor, _fixed: Sequence[Tensor] = fixed) -> None:
    for own, tensor in zip(indices, given, strict=True):
      base[own] = tensor.data_ptr()
    launch()

  return Call(run, tuple(moved.values()), {}, None)


@dataclass
class _Phase:
  """Calls between two others."""

  calls: list[Call] = field(default_factory=list)
  program: Program | None = None  # of what they do, if they are of rows


class _Schedule:
  """The phases of calls."""

  def __init__(self, calls: Sequence[Call], rows: int, fresh: set[int], given: Sequence[Tensor]) -> None:
    self._calls, self._rows, self._fresh, self._given = calls, rows, fresh, memory_of(given)
    # Memory of several arguments, whose distances may change from call to call.
    self._shared = {own for own, count in Counter(map(address_of, given)).items() if count > 1}
    self._views: dict[tuple[object, ...], Call] = {}
    for call in filter(is_view, calls):
      for tensor in tensors_of(call.result):
        self._views.setdefault(place_of(tensor), call)
    self._phases = self._arrange()
    self.static: set[int] = set()  # memory that functions allocate, and later phases use

  def programs(self) -> dict[int, Program]:
    """Return the programs of the phases that become functions; they store nothing that nobody reads."""
    for phase in self._phases.values():
      if phase.program and not (len(phase.calls) >= LEAST and _check(phase)):
        phase.program = None
    found = {number: phase.program for number, phase in self._phases.items() if phase.program}
    last: dict[int, int] = {}
    for number, phase in self._phases.items():
      last |= dict.fromkeys(chain.from_iterable(call.inputs | call.written for call in phase.calls), number)
    made = self._made()
    lost = self._fresh - self._given
    self.static = {own for own, number in made.items() if number in found and last[own] > number} & lost
    for number, program in found.items():
      for memory in {cell.memory for cell in program.stores} & lost:
        if last[memory] == number:
          program.forget(memory)
    return found

  def origins(self) -> list[Tensor]:
    """Return the tensors of each memory, in the order in which they appeared."""
    return [own for call in self._calls for own in tensors_of((call.args, call.kwargs, call.result))]

  def order(self, fused: dict[int, Call]) -> list[Call]:
    """Return all calls in order, with functions in place of the phases that these are of."""
    done = set[int]()
    calls: list[Call] = []
    for number, phase in self._phases.items():
      for call in [fused[number]] if number in fused else phase.calls:
        calls += [*self._missing(call, done), call]
    return calls

  def _missing(self, call: Call, done: set[int]) -> Iterator[Call]:
    """Yield the views that a call needs, in order, but for those that are `done` or of static memory."""
    for tensor in tensors_of((call.args, call.kwargs)):
      view = self._views.get(place_of(tensor))
      if view and id(view) not in done and address_of(tensor) not in self.static:
        done.add(id(view))
        yield from self._missing(view, done)
        yield view

  def _made(self) -> dict[int, int]:
    """Return the memory that calls allocate, and the phases that do."""
    return {
      memory: number
      for number, phase in self._phases.items()
      for call in phase.calls
      for memory in memory_of(call.result) - call.inputs
    }

  def _arrange(self) -> dict[int, _Phase]:
    """Return the phases by number: those of rows have even ones."""
    phases: dict[int, _Phase] = {}
    read, written = dict[int, int](), dict[int, int]()  # the last phases that read and write a memory
    first = 1
    for call in self._calls:
      if is_view(call):
        continue
      if is_barrier(call):
        first = max(phases, default=0) // 2 * 2 + 1
        phases.setdefault(first, _Phase()).calls.append(call)
        first += 2
        continue
      before = [first, *(written.get(memory, 0) for memory in call.inputs | call.written)]
      before += [read.get(memory, 0) for memory in call.written]
      number, of_rows = max(before), self._fits(call)
      number += number % 2 != (not of_rows)
      phases.setdefault(number, _Phase()).calls.append(call)
      for known, memories in ((read, call.inputs), (written, call.written)):
        known |= {memory: max(number, known.get(memory, 0)) for memory in memories}
    for number, phase in phases.items():
      if number % 2 == 0:
        phase.program = Program(self._rows)
    return dict(sorted(phases.items()))

  def _fits(self, call: Call) -> bool:
    if (call.inputs | call.written) & self._shared:
      return False
    try:
      operations.add(Program(self._rows), call)
    except UnfitError:
      return False
    return True


def _check(phase: _Phase) -> bool:
  """Write the program of a phase; return whether it could be."""
  assert phase.program
  try:
    for call in phase.calls:
      operations.add(phase.program, call)
    phase.program.check_layouts()
  except UnfitError:
    return False
  return True


def is_view(call: Call) -> bool:
  """Return whether a call does nothing but give memory another shape."""
  return not call.changes and bool(memory_of(call.result)) and memory_of(call.result) <= call.inputs


def is_barrier(call: Call) -> bool:
  """Return whether a call must keep its place: what it reads and changes is not known."""
  operation = call.operation
  if not isinstance(operation, OpOverload) or operation.namespace != "aten":
    return True
  return torch.Tag.nondeterministic_seeded in operation.tags
