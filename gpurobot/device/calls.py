"""Calls of torch's operations, as a tape keeps them, and the memory of their tensors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves


class Call(NamedTuple):
  """An operation, or a `repeated` function, with its arguments and its result."""

  operation: OpOverload | Callable[..., None]
  args: tuple[Any, ...]
  kwargs: Mapping[str, Any]
  result: Any

  @property
  def inputs(self) -> set[int]:
    """The memory of its arguments."""
    return memory_of((self.args, self.kwargs))

  @property
  def changes(self) -> bool:
    """Whether it changes arguments, or other state than tensors."""
    return bool(self.operation._schema.is_mutable) if isinstance(self.operation, OpOverload) else True

  @property
  def changed(self) -> list[Tensor]:
    """The arguments that it changes."""
    if not isinstance(self.operation, OpOverload):
      return []
    known = self.operation._schema.arguments
    given = dict(zip([own.name for own in known], self.args, strict=False)) | dict(self.kwargs)
    names = [own.name for own in known if own.alias_info and own.alias_info.is_write]
    return tensors_of([given.get(name) for name in names])

  @property
  def written(self) -> set[int]:
    """The memory of its result, and of the arguments that it changes."""
    return memory_of((self.result, self.changed))


# Return calls with functions in place of many, or None. Arguments: the calls, the memory that they allocate,
# and the arguments of their tape.
Fusion = Callable[[Sequence[Call], set[int], Sequence[Tensor]], list[Call] | None]


def tensors_of(values: Any) -> list[Tensor]:
  """Return the tensors among values, which may be in containers."""
  return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def memory_of(values: Any) -> set[int]:
  """Return the memory addresses of tensors; empty ones have none."""
  return {address_of(tensor) for tensor in tensors_of(values)} - {0}


def address_of(tensor: Tensor) -> int:
  """Return the address of a tensor's memory, which its views share."""
  return tensor.untyped_storage().data_ptr()


def place_of(tensor: Tensor) -> tuple[Any, ...]:
  """Return the identity of a tensor, whatever its object: its memory, and its place and layout there."""
  return address_of(tensor), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
