"""Fusion of a tape's operations on a CPU: runs of those that treat every row alike become functions.

They are traced, see `operations.py`; the tracer of `physics/trace` writes, builds and launches their text.
Each operation comes as early as the memory that it uses allows, so that there are few runs. Calls of unknown
effect stay where they are, between those before and after them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload

from gpurobot.device.calls import Call, Fused, address_of, memory_of, tensors_of
from gpurobot.fusion.operations import Cell, Rows, UnfitError, add
from physics.trace.emit import exact_source
from physics.trace.exact import exact_kernel
from physics.trace.kernel import CPU_LANES
from physics.trace.launcher import Launcher
from physics.trace.statement import walk
from physics.trace.trace import Program

LEAST = 3  # operations of a function; fewer take less time in torch


def fused(
  rows: int,
  calls: Sequence[Call],
  fresh: set[int],
  given: Sequence[Tensor],
  ready: Callable[[Any, str], bool] = lambda *_: True,
) -> Fused | None:
  """Fuse calls for a number of rows as `calls.Fusion` does; None if their kernel, of a text, is not ready."""
  tensors = tensors_of([(call.args, call.kwargs, call.result) for call in calls])
  cells = defaultdict[Cell, int](count().__next__)
  runs = [] if _overlap(tensors) else [*_runs(rows, calls, given, cells)]  # what depends on what is unknown
  last = {memory: i for i, (run, _) in enumerate(runs) for call in run for memory in _used(call)}
  own, static, programs = fresh - memory_of(given), set[int](), dict[int, Program]()
  for i, (run, traced) in enumerate(runs):
    if traced:  # what only the run uses is not written; later runs find the rest at the same place
      programs[i] = traced.traced({memory for memory in own if last.get(memory) == i})
      made = {memory for call in run for memory in memory_of(call.result) - call.inputs}
      static |= {memory for memory in made & own if last[memory] > i}
  if not programs:
    return None
  source = exact_source([*programs.values()], CPU_LANES)
  kernel = exact_kernel(source)
  if not ready(kernel, source):
    return None
  launcher = Launcher([kernel], torch.device("cpu"), rows // CPU_LANES, threads=1)
  origin = {address_of(tensor): tensor for tensor in [*reversed(tensors), *given]}
  functions = _functions(launcher, programs.values(), [*cells], origin, (fresh - static) | memory_of(given))
  order: list[Call] = []
  for i, (run, _) in enumerate(runs):
    order += [*filter(is_view, run), next(functions)] if i in programs else run
  return Fused(order, static)


def _runs(
  rows: int, calls: Sequence[Call], given: Sequence[Tensor], cells: Mapping[Cell, int]
) -> Iterator[tuple[list[Call], Rows | None]]:
  """Yield runs of calls, in order: operations of rows, with what they do to them, or others."""
  # Memory of several arguments, whose distances may change from call to call.
  shared = {own for own, times in Counter(map(address_of, given)).items() if times > 1}
  found, first = list[tuple[int, Call]](), 1
  read, written = dict[int, int](), dict[int, int]()  # the last runs that read and write a memory
  for call in calls:
    before = [first, *(written.get(memory, 0) for memory in call.inputs | call.written)]
    number = max(before + [read.get(memory, 0) for memory in call.written])
    if is_barrier(call):
      number = max((own for own, _ in found), default=0) // 2 * 2 + 1
      first = number + 2
    elif not is_view(call):  # a run with an even number is of rows
      fits = not _used(call) & shared and _rows(rows, [call], defaultdict(int)) is not None
      number += number % 2 == fits
    found.append((number, call))
    if not is_view(call):
      read |= {memory: max(number, read.get(memory, 0)) for memory in call.inputs}
      written |= dict.fromkeys(call.written, number)
  for number, group in groupby(sorted(found, key=itemgetter(0)), itemgetter(0)):
    run = [call for _, call in group]
    active = [call for call in run if not is_view(call)]
    yield run, _rows(rows, active, cells) if number % 2 == 0 and len(active) >= LEAST else None


def _rows(count: int, calls: Sequence[Call], cells: Mapping[Cell, int]) -> Rows | None:
  """Return what operations do to rows; None if that cannot be expressed."""
  rows = Rows(count, cells)
  try:
    for call in calls:
      add(rows, call)
    rows.check()
  except UnfitError:
    return None
  return rows


def _functions(
  launcher: Launcher,
  programs: Iterable[Program],
  cells: Sequence[Cell],
  origin: Mapping[int, Tensor],
  moving: set[int],
) -> Iterator[Call]:
  """Yield the call of each program; origin: a tensor of each memory; moving: memory that replays replace."""
  numbers = np.array([cell.offset for cell in cells if not cell.memory], np.uint64)
  constants = count(numbers.ctypes.data, numbers.itemsize)
  at = np.array([cell.memory + cell.offset if cell.memory else next(constants) for cell in cells])
  for number, program in enumerate(programs):
    used: dict[int, list[int]] = {}  # cells by memory
    for cell in {s.args[0] for s in walk(program.body) if s.kind in {"fetch", "keep"}}:
      used.setdefault(cells[cell].memory, []).append(cell)
    moved = [(origin[memory], np.array(own)) for memory, own in used.items() if memory in moving]
    parts = [(own, at[own] - tensor.data_ptr()) for tensor, own in moved]
    recording = launcher.record([number, torch.from_numpy(at)])
    kept = numbers, recording, [origin[memory] for memory in used if memory and memory not in moving]
    ((launch,),) = recording.launches  # on one thread

    def run(*given: Tensor, _parts: Any = parts, _launch: Any = launch.launch, _kept: Any = kept) -> None:
      for (own, places), tensor in zip(_parts, given, strict=True):
        at[own] = places + tensor.data_ptr()
      _launch()

    yield Call(run, tuple(tensor for tensor, _ in moved), {}, None)


def _overlap(tensors: Sequence[Tensor]) -> bool:
  """Return whether two memories that have addresses of their own share bytes."""
  ends = {address_of(own): address_of(own) + own.untyped_storage().nbytes() for own in tensors}
  return any(end > begin for (_, end), (begin, _) in pairwise(sorted(ends.items())))


def _used(call: Call) -> set[int]:
  """Return the memory that a call uses; a view uses none."""
  return set() if is_view(call) else call.inputs | call.written


def is_view(call: Call) -> bool:
  """Return whether a call does nothing but give memory another shape."""
  return not call.changes and bool(memory_of(call.result)) and memory_of(call.result) <= call.inputs


def is_barrier(call: Call) -> bool:
  """Return whether a call must keep its place: what it reads and changes is not known."""
  operation = call.operation
  if not isinstance(operation, OpOverload) or operation.namespace != "aten":
    return True
  return torch.Tag.nondeterministic_seeded in operation.tags
