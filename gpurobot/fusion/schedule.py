"""Fusion of a tape's operations on a CPU: consecutive ones that treat every row alike become functions.

They are traced, see `operations.py`; the tracer of `physics/trace` writes, builds and launches their text. A
thread builds it beside the training.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gpurobot.device import threads
from gpurobot.device.calls import Call, address_of, memory_of, tensors_of
from gpurobot.device.tape import Tape
from gpurobot.fusion.operations import Rows
from physics.trace.exact import exact_kernel
from physics.trace.kernel import CPU_LANES, is_built, load_kernel
from physics.trace.launcher import Launcher, Recording
from physics.trace.statement import walk
from physics.trace.trace import Program

LEAST = 3  # operations of a function; fewer take less time in torch
Runs = list[tuple[list[Call], Rows | None]]  # calls in order: operations of rows with what they do, or others


def fuse(taped: object, num_envs: int) -> None:
  """Let a tape fuse operations on environments, if these are whole lane groups, and on one thread."""
  if isinstance(taped, Tape) and num_envs % CPU_LANES == 0 and threads.enough(num_envs) == 1:
    taped.fusion = Fusion(num_envs)


class Fusion:
  """Fusion of calls for a number of rows by a kernel in Warp's cache; a `calls.Fusion`."""

  def __init__(self, rows: int) -> None:
    self.rows = rows
    self._missing = ""  # the kernel that the last calls lacked
    self._pool, self._build = ThreadPoolExecutor(1), Future[None]()

  def __call__(self, calls: Sequence[Call], fresh: set[int], given: Sequence[Tensor]) -> list[Call] | None:
    """Return calls with functions in place of many; None if there are none, or their kernel is not built."""
    tensors = tensors_of([(call.args, call.kwargs, call.result) for call in calls])
    times = Counter(map(address_of, given))  # of one memory, as distances may change from call to call
    origin = {address_of(own): own for own in [*reversed(tensors), *given] if times[address_of(own)] < 2}
    numbers = dict[int, int]()
    runs = [] if _overlap(origin.values()) else _runs(self.rows, calls, origin, numbers)
    programs, static = _programs(runs, fresh - memory_of(given))
    kernel = exact_kernel([*programs.values()])
    if not programs or not self.ready(kernel):
      return None
    launcher = Launcher([kernel], torch.device("cpu"), self.rows // CPU_LANES, threads=1)
    memory, moving = [origin[own] for own in numbers], (fresh - static) | memory_of(given)
    at = torch.tensor([own.data_ptr() for own in memory])
    order: list[Call] = []
    for i, (run, _) in enumerate(runs):
      if i in programs:
        recording = launcher.record([[*programs].index(i), at])
        order += [*filter(is_view, run), _function(programs[i], recording, at, memory, moving)]
      else:
        order += run
    return order

  def ready(self, kernel: Any) -> bool:
    """Return whether a kernel is built; build what is asked for twice. RuntimeError if a build failed."""
    again, self._missing = self._missing == kernel.module.name, kernel.module.name
    if is_built(kernel, 1):
      return True
    if self._build.done() and (error := self._build.exception()):
      raise RuntimeError(str(error)) from error
    if again:
      self._build = self._pool.submit(load_kernel, kernel, "cpu", 1)
    return False


def _runs(count: int, calls: Sequence[Call], origin: dict[int, Tensor], numbers: dict[int, int]) -> Runs:
  """Return calls in runs as long as can be."""
  runs: Runs = [([], None)]
  for call in calls:
    if not is_view(call):
      rows = runs[-1][1] or Rows(count, origin, numbers)
      own = rows if rows.add(call) else None
      if own is not runs[-1][1]:
        runs.append(([], own))
    runs[-1][0].append(call)
  return runs


def _programs(runs: Runs, fresh: set[int]) -> tuple[dict[int, Program], set[int]]:
  """Return what runs do, by index, and the memory that they need no allocation for.

  What `fresh` memory only one run uses is not written; later runs find the rest at the same place.
  """
  active = [[call for call in run if not is_view(call)] for run, _ in runs]
  last = {own: i for i, run in enumerate(active) for call in run for own in call.inputs | call.written}
  programs, static = dict[int, Program](), set[int]()
  for i, (run, rows) in enumerate(runs):
    if rows and len(active[i]) >= LEAST and rows.fits():
      programs[i] = rows.traced({own for own in fresh if last.get(own) == i})
      static |= {own for call in run for own in memory_of(call.result) - call.inputs}
  return programs, static


def _function(
  program: Program, recording: Recording, at: Tensor, memory: Sequence[Tensor], moving: set[int]
) -> Call:
  """Return the call of a program; at: the addresses of all memory, which replays replace if it is moving."""
  used = sorted({s.args[0] for s in walk(program.body) if s.kind in {"fetch", "keep"}})
  moved = [i for i in used if address_of(memory[i]) in moving]
  ((launch,),), places = recording.launches, at.numpy()  # on one thread

  def run(*given: Tensor) -> None:
    for i, tensor in zip(moved, given, strict=True):
      places[i] = tensor.data_ptr()
    launch.launch()

  vars(run)["kept"] = recording, [memory[i] for i in used if i not in moved]
  return Call(run, tuple(memory[i] for i in moved), {}, None)


def _overlap(tensors: Iterable[Tensor]) -> bool:
  """Return whether two memories that have addresses of their own share bytes."""
  ends = sorted((address_of(own), address_of(own) + own.untyped_storage().nbytes()) for own in tensors)
  return any(end > begin for (_, end), (begin, _) in pairwise(ends))


def is_view(call: Call) -> bool:
  """Return whether a call does nothing but give memory another shape."""
  return not call.changes and bool(memory_of(call.result)) and memory_of(call.result) <= call.inputs
