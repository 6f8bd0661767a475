"""Tape of a piece of an iteration on a CPU: its tensor operations, recorded once and replayed."""

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec

import torch
from torch import Tensor, UntypedStorage
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _pop_mode_temporarily

from gpurobot.device.calls import Call, Fusion, address_of, memory_of, place_of, tensors_of
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.python_state import NEAR, SHARED, difference, python_state

P = ParamSpec("P")
ATEN = torch.ops.aten
READING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
# An index by a mask has as many results as the mask has ones; torch marks these whatever the index is.
INDEXING = {ATEN.index.Tensor, ATEN.index_put_.default}
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
# Calls in which functions take the place of operations if they are built: FUSE, and all multiples of BUILD.
# The second of them starts the build; shorter runs gain less than it takes.
FUSE, BUILD = 100, 1000
# Calls in which a replay is compared: the first, and later ones, as Python's own state may change any time.
COMPARED = {WARM_UPS + 2, *(10**power + 1 for power in range(3, 12))}
# Operations with the same result in every replay.
CONSTANT = {ATEN.scalar_tensor.default, ATEN.ones_like.default, ATEN.zeros_like.default}


class Tape:
  """A function on static memory that replays its operations, as a CUDA graph replays its kernels.

  The first WARM_UPS calls run the function, the next one records its operations, and all calls from then on
  repeat these on the same static memory, hence with the same numbers. The function's Python, autograd's
  bookkeeping, views of static memory, and operations whose results nothing uses are gone. So no branch of the
  function may depend on Python state, and what it does besides torch's operations and `repeated` functions
  happens in the first calls alone.

  The first replay is compared with the function, which runs on the same memory, and so are the replays of
  calls 1,001, 10,001, 100,001 ... If a number differs, if the function reads one from a tensor, or if one
  changes that Python keeps, the tape warns and calls the function instead.

  In a long run, functions take the place of many operations, see `fusion`. The first call with them is
  compared too.
  """

  def __init__(
    self, function: Callable[..., None], watched: Mapping[str, Any] = MappingProxyType({})
  ) -> None:
    """Wrap a function. It may take tensors, others of the same shapes and strides in each call.

    They may be in dicts and lists; any other argument must be the same in each call. watched: objects, by
    name, whose `python_state` must not change.
    """
    self.function, self._watched = function, watched
    self.fusion: Fusion | None = None  # what puts functions in the place of operations
    self.fused = False  # whether functions have taken the place of operations
    self.source = ""  # what is replayed, as a Python function
    self._calls = 0
    self._replay: Callable[..., None] | None = None
    self._written: list[UntypedStorage] = []  # what a replay writes, besides the arguments
    self._kept: dict[str, Any] = {}  # what Python kept when the call was recorded

  def __call__(self, *args: Any) -> None:
    """Run the function once, directly or by replay."""
    self._calls += 1
    turn = self._calls == FUSE or self._calls % BUILD == 0
    if self._calls == WARM_UPS + 1 or (turn and self._replay and self.fusion and not self.fused):
      self._record(args)
    elif self._replay and self._calls in COMPARED:
      self._compare(args)
    elif self._replay:
      with torch.no_grad():
        self._replay(*tensors_of(args))
    else:
      self.function(*args)

  def refresh(self) -> None:
    """Record the next call again if what Python keeps has changed since, as a caller may set an attribute."""
    near = python_state(self._watched, NEAR) if self._replay else {}
    if difference({path: self._kept.get(path) for path in near}, near):
      self._calls, self._replay = WARM_UPS, None

  def _record(self, args: tuple[Any, ...]) -> None:
    """Run the function, and write down what it does, fused or not; the next call compares."""
    kept, shared = python_state(self._watched), python_state(SHARED)
    with _Recorder() as recorder:
      self.function(*args)
    if recorder.read:
      self._warn(f"{recorder.read} reads a number from a tensor", "use torch.where, or ")
      return
    if path := difference(shared, python_state(SHARED)):
      self._warn(f"{path} draws a number", "draw it with self.random, or ")
      return
    fusion = self.fusion if self.fused or self._replay else None
    try:
      script = write(recorder.calls, tensors_of(args), fusion)
    except (OSError, RuntimeError) as error:  # a build has the system's too
      (self._stay if self._replay else self._warn)(str(error))
      return
    if script.fused or not self._replay:
      self.source, self._replay, self._written, self.fused = script
      self._calls = WARM_UPS + 1
      self._kept = python_state(self._watched) if self.fused else kept  # a build changes what Warp keeps

  def _compare(self, args: tuple[Any, ...]) -> None:
    """Run the function; replay no more if a replay on the same memory differs, or if Python counts calls."""
    assert self._replay
    given = tensors_of(args)
    memory = {own.data_ptr(): own for own in [*self._written, *(own.untyped_storage() for own in given)]}
    before = {address: own.clone() for address, own in memory.items()}
    with torch.no_grad():
      self._replay(*given)
    replayed = {address: own.clone() for address, own in memory.items()}
    for address, own in memory.items():
      own.copy_(before[address])
    self.function(*args)
    if path := difference(self._kept, python_state(self._watched)):
      self._warn(f"{path} changes from call to call", "keep it in a tensor, or ")
    elif all(_same(own, replayed[address]) for address, own in memory.items()):
      return
    elif self.fused:
      self._stay("it has other numbers")
      self.fused, self._replay, self._calls = False, None, WARM_UPS  # record it again
    else:
      self._warn("repeated operations give other numbers, as what Python counts or torch's generator does")

  def _warn(self, reason: str, remedy: str = "") -> None:
    """Replay no more, and say why, and what else to do than to write graphs=off."""
    self._replay = None
    warnings.warn(f"'{self._name}' is not replayed: {reason}; {remedy}write graphs=off", stacklevel=4)

  def _stay(self, reason: str) -> None:
    """Fuse no more, and say why."""
    self.fusion = None
    warnings.warn(f"'{self._name}' is not fused: {reason}; write compile=off", stacklevel=4)

  @property
  def _name(self) -> str:
    return getattr(self.function, "__name__", "piece").strip("_")


def reads(operation: OpOverload, args: Sequence[Any]) -> bool:
  """Return whether an operation gives Python a number, or a shape that depends on numbers."""
  if operation in INDEXING:
    return any(index is not None and index.dtype == torch.bool for index in args[1])
  return bool(READING & {*operation.tags})


def repeated(function: Callable[P, None]) -> Callable[P, None]:
  """Return a function that is no operation of torch, which a tape repeats with the same arguments."""

  @functools.wraps(function)
  def call(*args: P.args, **kwargs: P.kwargs) -> None:
    recorder = _get_current_dispatch_mode()
    if not isinstance(recorder, _Recorder):
      function(*args, **kwargs)
      return
    recorder.calls.append(Call(function, args, kwargs, None))
    with _pop_mode_temporarily():  # its own operations are repeated with it
      function(*args, **kwargs)

  vars(call)["repeated"] = True  # for `python_state`
  return call


class UnknownTensorError(RuntimeError):
  """A function's operations use a tensor that none of them has made."""


class _Recorder(TorchDispatchMode):
  """Recorder of all operations in its block, below autograd, including a backward pass."""

  def __init__(self) -> None:
    super().__init__()
    self.calls: list[Call] = []
    self.read = ""  # an operation that reads a number from a tensor, for Python to go on with

  def __torch_dispatch__(
    self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
  ) -> Any:
    """Run an operation, and keep the call with all tensors, so that each has memory of its own."""
    result = func(*args, **(kwargs or {}))
    self.calls.append(Call(func, args, kwargs or {}, result))
    if reads(func, args):
      self.read = str(func)
    return result


class Script(NamedTuple):
  """A Python function that repeats calls, and what it writes, besides its arguments and what it allocates."""

  source: str
  function: Callable[..., None]
  written: list[UntypedStorage]
  fused: bool


def write(calls: Sequence[Call], given: Sequence[Tensor] = (), fusion: Fusion | None = None) -> Script:
  """Return the function that repeats calls, which a fusion may change; given: its arguments."""
  arguments = memory_of(given)
  fresh = allocated(calls)
  kept = needed(calls, fresh, arguments)
  outside = {address_of(tensor): tensor for call in kept for tensor in call.changed}
  written = [
    tensor.untyped_storage() for memory, tensor in outside.items() if memory not in fresh | arguments
  ]
  fused = fusion(kept, fresh, given) if fusion else None
  if fused:
    fresh &= {memory for call in fused for memory in memory_of(call.result) - call.inputs}
    kept = needed(fused, fresh, arguments)
  last = {memory: call for call in kept for memory in (call.inputs | call.written) & fresh}
  writer = _Writer(fresh | arguments, given)
  lines = [line for call in kept if (line := writer.line(faster(call, last)))]
  source = "\n  ".join([f"def replay({', '.join(writer.arguments)}):", *_with_releases(lines), "return"])
  exec(source, writer.constants)
  return Script(source, writer.constants["replay"], written, fused is not None)


def allocated(calls: Sequence[Call]) -> set[int]:
  """Return the memory that calls allocate, without memory that has the same contents in every replay."""
  fresh, changed = set[int](), set[int]()
  for call in calls:
    fresh |= memory_of(call.result) - call.inputs
    changed |= set() if call.operation in CONSTANT else call.written
  return fresh & changed


def needed(calls: Sequence[Call], fresh: set[int], arguments: set[int]) -> list[Call]:
  """Return the calls that change memory other than `fresh`, and the calls on which they depend.

  Views of `arguments` are among these, as each replay has other arguments.
  """
  used: set[int] = set()
  kept: list[Call] = []
  for call in reversed(calls):
    outside = not call.changed or call.written - fresh  # without a tensor that changes, something else does
    if call.written & used or (call.changes and outside):
      kept.append(call)
      used |= call.inputs & (fresh | arguments)
  return kept[::-1]


def faster(call: Call, last: Mapping[int, Call]) -> Call:
  """Return a call with the same bits that takes less time; last: which call is the last to use memory."""
  operation, args, result = call.operation, call.args, call.result
  if operation in WITH_NUMBERS and isinstance(args[1], float | int) and result.dtype in EXACT:
    return call._replace(args=(args[0], torch.full((), args[1], dtype=result.dtype), *args[2:]))
  if operation in OVERWRITING:
    own, alike = memory_of(args[0]), place_of(args[0])[1:] == place_of(result)[1:]
    if alike and not own & memory_of(args[1:]) and all(last.get(memory) is call for memory in own):
      operation, name = OVERWRITING[operation]
      return call._replace(operation=operation, kwargs={**call.kwargs, name: args[0]})
  return call


class Line(NamedTuple):
  """A line of Python: a call, the names of its results, and the names of the earlier results that it uses."""

  text: str
  results: list[str]
  used: set[str]


class _Writer:
  """Writer of calls as lines of Python.

  All tensors are alive, so two of the same place are one tensor, whatever autograd has made of it.
  """

  def __init__(self, moving: set[int], given: Sequence[Tensor]) -> None:
    """Write calls on the `given` arguments; moving: their memory, and memory that the calls allocate."""
    self.constants: dict[str, Any] = {}  # by name: static memory, operations and other arguments
    self.arguments = [f"a{i}" for i in range(len(given))]
    self._moving = moving
    self._names = dict(zip(map(place_of, given), self.arguments, strict=True))  # of tensors, by place
    self._count = itertools.count()  # of results

  def line(self, call: Call) -> Line | None:
    """Return the line of a call; None if it only gives a tensor another time."""
    used: set[str] = set()
    words = [self._word(value, used) for value in call.args]
    words += [f"{name}={self._word(value, used)}" for name, value in call.kwargs.items()]
    operation = call.operation._op if isinstance(call.operation, OpOverload) else call.operation
    text = f"{self._constant(operation)}({', '.join(words)})"
    several = isinstance(call.result, tuple | list)
    values = call.result if several else [call.result]
    known = [not isinstance(value, Tensor) or place_of(value) in self._names for value in values]
    if all(known):
      return Line(text, [], used) if call.changes else None
    results = [self._name(value) for value in values]
    return Line(f"{', '.join(results)}{',' * several} = {text}", results, used)

  def _word(self, value: Any, used: set[str]) -> str:
    """Return an argument as it is written, and add the names of tensors to those that are used."""
    if isinstance(value, tuple | list) and memory_of(value):
      return f"[{', '.join(self._word(part, used) for part in value)}]"
    if isinstance(value, Tensor):
      place = place_of(value)
      if place not in self._names:
        if memory_of(value) & self._moving:
          raise UnknownTensorError("a tensor appears without an operation")
        self._names[place] = self._constant(value.detach())
      used.add(self._names[place])
      return self._names[place]
    finite = isinstance(value, float) and math.isfinite(value)
    return repr(value) if finite or isinstance(value, bool | int | None) else self._constant(value)

  def _name(self, value: Any) -> str:
    """Return a new name for a result: the name of its place, if no other result has it."""
    name = f"t{next(self._count)}"
    if isinstance(value, Tensor):
      self._names.setdefault(place_of(value), name)
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


def _same(one: UntypedStorage, other: UntypedStorage) -> bool:
  """Return whether two memories hold the same bits."""
  return torch.equal(*(torch.empty(0, dtype=torch.uint8).set_(own) for own in (one, other)))
