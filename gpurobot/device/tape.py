"""Tape of a piece of an iteration on a CPU: its tensor operations, recorded once and replayed."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpurobot.device.graph import WARM_UPS, Piece

ATEN = torch.ops.aten
# Operations with a number. Torch makes a float64 tensor of it and converts that, which takes longer than the
# operation; the number as a tensor of the result's type, if it is one of EXACT, gives the same bits.
WITH_NUMBERS = {
  getattr(ATEN, name).Tensor for name in ("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_")
}
EXACT = (torch.float32, torch.float64)
# Operations that can overwrite their first argument with the result, which is in the cache already, and how.
OVERWRITING = {
  getattr(ATEN, name).default: (getattr(ATEN, name).grad_input, "grad_input")
  for name in ("threshold_backward", "silu_backward", "elu_backward", "tanh_backward")
} | {ATEN.silu.default: (ATEN.silu.out, "out")}
# Operations with the same result in every replay.
CONSTANT = {ATEN.scalar_tensor.default, ATEN.ones_like.default, ATEN.zeros_like.default}


class Tape:
  """A function on static memory that replays its operations, as a CUDA graph replays its kernels.

  The first WARM_UPS calls run the function, the next one records its operations, and all calls from then on
  repeat these on the same static memory, hence with the same numbers. The function's Python, autograd's
  bookkeeping, views of static memory, and operations whose results nothing uses are gone. So no branch of the
  function may depend on Python state, and what it does besides torch's operations happens in the first calls
  alone.
  """

  def __init__(self, function: Piece) -> None:
    self.function = function
    self.source = ""  # what is replayed, as a Python function
    self._calls = 0
    self._replay: Piece | None = None

  def __call__(self) -> None:
    """Run the function once, directly or by replay."""
    self._calls += 1
    if self._replay:
      with torch.no_grad():
        self._replay()
    elif self._calls <= WARM_UPS:
      self.function()
    else:
      with _Recorder() as recorder:
        self.function()
      self.source, self._replay = write(recorder.calls)


class Call(NamedTuple):
  """An operation with its arguments and its result."""

  operation: torch._ops.OpOverload
  args: tuple[Any, ...]
  kwargs: dict[str, Any]
  result: Any

  @property
  def inputs(self) -> set[int]:
    """The memory of its arguments."""
    return _memory((self.args, self.kwargs))

  @property
  def changes(self) -> bool:
    """Whether it changes arguments."""
    return bool(self.operation._schema.is_mutable)

  @property
  def written(self) -> set[int]:
    """The memory of its result, and of the arguments that it changes."""
    known = self.operation._schema.arguments
    given = dict(zip([own.name for own in known], self.args, strict=False)) | self.kwargs
    changed = [own.name for own in known if own.alias_info and own.alias_info.is_write]
    return _memory((self.result, [given.get(name) for name in changed]))


class _Recorder(TorchDispatchMode):
  """Recorder of all operations in its block, below autograd: those of a backward pass are among them."""

  def __init__(self) -> None:
    super().__init__()
    self.calls: list[Call] = []

  def __torch_dispatch__(
    self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
  ) -> Any:
    """Run an operation, and keep the call with all tensors, so that each has memory of its own."""
    result = func(*args, **(kwargs or {}))
    self.calls.append(Call(func, args, kwargs or {}, result))
    return result


def write(calls: Sequence[Call]) -> tuple[str, Piece]:
  """Return the source of a Python function that repeats calls, and the function."""
  fresh = allocated(calls)
  kept = needed(calls, fresh)
  last = {memory: call for call in kept for memory in (call.inputs | call.written) & fresh}
  writer = _Writer(fresh)
  lines = [line for call in kept if (line := writer.line(faster(call, last)))]
  source = "\n  ".join(["def replay():", *_with_releases(lines), "return"])
  exec(source, writer.constants)
  return source, writer.constants["replay"]


def allocated(calls: Sequence[Call]) -> set[int]:
  """Return the memory that calls allocate, but for that whose contents are the same in every replay."""
  fresh, changed = set[int](), set[int]()
  for call in calls:
    fresh |= _memory(call.result) - call.inputs
    changed |= set() if call.operation in CONSTANT else call.written
  return fresh & changed


def needed(calls: Sequence[Call], fresh: set[int]) -> list[Call]:
  """Return the calls that change memory other than `fresh`, and those on whose results they depend."""
  used: set[int] = set()
  kept: list[Call] = []
  for call in reversed(calls):
    if call.written & used or (call.changes and call.written - fresh):
      kept.append(call)
      used |= call.inputs & fresh
  return kept[::-1]


def faster(call: Call, last: Mapping[int, Call]) -> Call:
  """Return a call with the same bits that takes less time; last: which call is the last to use memory."""
  operation, args, result = call.operation, call.args, call.result
  if operation in WITH_NUMBERS and isinstance(args[1], float | int) and result.dtype in EXACT:
    return call._replace(args=(args[0], torch.full((), args[1], dtype=result.dtype), *args[2:]))
  if operation in OVERWRITING:
    own, alike = _memory(args[0]), _place(args[0])[1:] == _place(result)[1:]
    if alike and not own & _memory(args[1:]) and all(last.get(memory) is call for memory in own):
      operation, name = OVERWRITING[operation]
      return call._replace(operation=operation, kwargs=call.kwargs | {name: args[0]})
  return call


class Line(NamedTuple):
  """A line of Python: a call, the names of its results, and those of the earlier results that it uses."""

  text: str
  results: list[str]
  used: set[str]


class _Writer:
  """Writer of calls as lines of Python.

  All tensors are alive, so two of the same place are one tensor, whatever autograd has made of it.
  """

  def __init__(self, fresh: set[int]) -> None:
    """Write calls that allocate the memory `fresh`."""
    self.constants: dict[str, Any] = {}  # by name: static memory, operations and other arguments
    self._fresh = fresh
    self._names: dict[tuple[Any, ...], str] = {}  # of tensors, by place
    self._count = itertools.count()  # of results

  def line(self, call: Call) -> Line | None:
    """Return the line of a call; None if it only gives a tensor another time."""
    used: set[str] = set()
    words = [self._word(value, used) for value in call.args]
    words += [f"{name}={self._word(value, used)}" for name, value in call.kwargs.items()]
    text = f"{self._constant(call.operation._op)}({', '.join(words)})"
    several = isinstance(call.result, tuple | list)
    values = call.result if several else [call.result]
    known = [not isinstance(value, Tensor) or _place(value) in self._names for value in values]
    if all(known):
      return Line(text, [], used) if call.changes else None
    results = [self._name(value) for value in values]
    return Line(f"{', '.join(results)}{',' * several} = {text}", results, used)

  def _word(self, value: Any, used: set[str]) -> str:
    """Return an argument as it is written, and add the names of tensors to those that are used."""
    if isinstance(value, tuple | list) and _memory(value):
      return f"[{', '.join(self._word(part, used) for part in value)}]"
    if isinstance(value, Tensor):
      place = _place(value)
      if place not in self._names:
        if _memory(value) & self._fresh:
          raise RuntimeError("a tensor appeared without an operation")
        self._names[place] = self._constant(value.detach())
      used.add(self._names[place])
      return self._names[place]
    finite = isinstance(value, float) and math.isfinite(value)
    return repr(value) if finite or isinstance(value, bool | int | None) else self._constant(value)

  def _name(self, value: Any) -> str:
    """Return a new name for a result, which is that of its place if that has none."""
    name = f"t{next(self._count)}"
    if isinstance(value, Tensor):
      self._names.setdefault(_place(value), name)
    return name

  def _constant(self, value: Any) -> str:
    name = f"c{len(self.constants)}"
    self.constants[name] = value
    return name


def _with_releases(lines: Sequence[Line]) -> Iterator[str]:
  """Yield the lines, each followed by the release of the results that no later one uses."""
  last = {name: i for i, line in enumerate(lines) for name in (*line.results, *line.used)}
  results = {name for line in lines for name in line.results}
  for i, line in enumerate(lines):
    yield line.text
    if done := sorted(name for name in results & {*line.results, *line.used} if last[name] == i):
      yield f"del {', '.join(done)}"


def _tensors(values: Any) -> list[Tensor]:
  return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _memory(values: Any) -> set[int]:
  """Return the addresses of the memory of tensors, of which empty ones have none."""
  return {tensor.untyped_storage().data_ptr() for tensor in _tensors(values)} - {0}


def _place(tensor: Tensor) -> tuple[Any, ...]:
  memory = tensor.untyped_storage().data_ptr()
  return memory, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
