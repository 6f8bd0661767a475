"""Requirements of a CUDA graph on an iteration, checked on any machine: no reads, static memory, replay."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from gpurobot.device.tape import reads

READS = {Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.__array__}  # no operations where the device is a CPU


class DeviceRead(AssertionError):
  """An operation that no captured graph can hold; the traceback leads to the line."""


class _NoReadingOperation(TorchDispatchMode):
  def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None) -> Any:
    if reads(func, args) or func is torch.ops.aten.lift_fresh.default:
      raise DeviceRead(str(func))
    return func(*args, **(kwargs or {}))


class _NoReadingMethod(TorchFunctionMode):
  def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None) -> Any:
    if func in READS:
      raise DeviceRead(str(func))
    return func(*args, **(kwargs or {}))


@contextmanager
def no_reads() -> Iterator[None]:
  """Fail where the host reads the device, a shape depends on data, or a tensor is made from host data.

  Python numbers in arithmetic and `fill_` are allowed: they are arguments of the kernels.
  """
  with _NoReadingOperation(), _NoReadingMethod():
    yield


class Tape(TorchDispatchMode):
  """Records operations with the memory that they read and write; `replay` repeats them on that memory.

  What Python does between the operations is done once, while they are recorded.
  """

  def __init__(self) -> None:
    super().__init__()
    self._calls: list[Callable[[], Any]] = []

  def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None) -> Any:
    results = func(*args, **(kwargs or {}))
    if torch.Tag.inplace_view not in func.tags:  # these change what a tensor object shows of its memory
      seen, kept = tree_map(_alias, ((args, dict(kwargs or {})), results))
      self._calls.append(partial(_repeat, partial(func, *seen[0], **seen[1]), kept))
    return results

  @torch.no_grad()
  def replay(self) -> None:
    """Repeat the operations."""
    for call in self._calls:
      call()


class TapedGraph:
  """What `gpurobot.device.graph.Graph` is on CUDA, with a tape: called, then recorded, then replayed."""

  def __init__(self, function: Callable[[], None], _recorder: object, **_watched: object) -> None:
    self.function, self.tape, self.calls = function, Tape(), 0

  def __call__(self) -> None:
    self.calls += 1
    if self.calls == 1:
      self.function()
    elif self.calls == 2:
      with self.tape:
        self.function()
    else:
      self.tape.replay()


def _alias(value: Any) -> Any:
  """Return another tensor object on the same memory."""
  return value.detach() if isinstance(value, Tensor) else value


def _repeat(operation: Callable[[], Any], results: Any) -> None:
  """Run an operation again, and put what it returns where its results were."""
  for old, new in zip(tree_leaves(results), tree_leaves(operation()), strict=True):
    if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():  # neither a view nor in place
      old.copy_(new)
