"""Program of one row: what operations on tensors of many rows compute for each of them, number by number.

A row is an index of the one dimension that all rows share, such as an environment. A tensor has the same
numbers for every row, or numbers of the row: each is a cell, at a fixed place from the start of the row.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

KINDS = {
  torch.float32: "f",
  torch.float64: "d",
  torch.int64: "l",
  torch.int32: "i",
  torch.bool: "b",
  torch.bfloat16: "h",
}
SIZES = {"f": 4, "d": 8, "l": 8, "i": 4, "b": 1, "h": 2}  # in memory [bytes]
MOST = 1024  # numbers of a tensor in a row; images have more, and gain nothing
Values = NDArray[np.int64]  # indices of nodes, in the shape of a tensor with 1 in place of its rows


class UnfitError(Exception):
  """An operation is none that a program of rows can express."""


class Node(NamedTuple):
  """A number of a row: an operation on other numbers, whose indices are its arguments, or one from memory."""

  op: str
  kind: str
  args: tuple[int, ...] = ()


class Cell(NamedTuple):
  """A number in memory: the memory's address, the distance of rows and the place of the first one [bytes]."""

  memory: int
  stride: int
  offset: int
  kind: str

  @property
  def place(self) -> tuple[int, int, int]:
    """Where it is, whatever kind of number is there."""
    return self[:3]


class Program:
  """What a sequence of operations computes for a row: loads, arithmetic and stores."""

  def __init__(self, rows: int) -> None:
    self.rows = rows
    self.nodes: list[Node] = []
    self.cells: dict[Cell, int] = {}  # those that are loaded or stored, and their indices
    self.numbers: dict[tuple[str, str], int] = {}  # constants, by kind and text, and their indices
    self.stores: dict[Cell, tuple[int, int]] = {}  # the node that a cell gets, and how many were there then
    self._known: dict[Node, int] = {}
    self._held: dict[tuple[int, int, int], int] = {}  # nodes, by the place that holds them
    self._strides: dict[int, set[int]] = {}  # by memory
    self._kinds: dict[int, set[str]] = {}  # in memory, by memory
    self._written: set[int] = set()  # memory

  def node(self, op: str, kind: str, *args: int) -> int:
    """Return the index of a node, which equal ones share."""
    node = Node(op, kind, args)
    if node not in self._known:
      self._known[node] = len(self.nodes)
      self.nodes.append(node)
    return self._known[node]

  def number(self, value: float, kind: str) -> Values:
    """Return a constant, as the values of a tensor without dimensions."""
    if kind == "b":
      return np.array(self.node("yes" if value else "no", "b"))
    text = repr(float(value) if kind in "fd" else int(value))
    return np.array(self.node("number", kind, self.numbers.setdefault((kind, text), len(self.numbers))))

  def read(self, tensor: Tensor) -> Values:
    """Return the values of a tensor."""
    cells, shape = self._cells(tensor)
    return np.array([self._load(cell) for cell in cells], dtype=np.int64).reshape(shape)

  def write(self, tensor: Tensor, values: Values) -> None:
    """Store values of a tensor's kind in the tensor."""
    self._written.add(tensor.untyped_storage().data_ptr())
    cells, shape = self._cells(tensor)
    for cell, value in zip(cells, np.broadcast_to(values, shape).ravel().tolist(), strict=True):
      self._held[cell.place] = value
      self.stores[cell] = value, len(self.nodes)
      self._index(cell)

  def loaded(self, cell: Cell) -> int | None:
    """Return the node of what a cell held at first; None if it was not loaded."""
    return self._known.get(Node("load", cell.kind, (self.cells[cell],)))

  def forget(self, memory: int) -> None:
    """Store nothing in a memory: nothing reads it afterwards."""
    self.stores = {cell: stored for cell, stored in self.stores.items() if cell.memory != memory}

  def check_layouts(self) -> None:
    """Raise UnfitError if two cells of a memory that is written overlap, for any two rows."""
    for memory in {cell.memory for cell in self.stores}:
      cells = sorted(cell for cell in self.cells if cell.memory == memory)
      begin = cells[0].offset  # of a part of the memory, in which the rows follow one another
      for cell in cells:
        if cell.offset - begin >= self.rows * cell.stride:
          begin = cell.offset
        if cell.offset - begin + SIZES[cell.kind] > cell.stride:
          raise UnfitError("rows overlap")

  def _cells(self, tensor: Tensor) -> tuple[list[Cell], tuple[int, ...]]:
    """Return the cells of a tensor, in order, and its shape with 1 in place of its rows."""
    size, row = tensor.element_size(), row_dimension(tensor, self.rows)
    if tensor.dtype not in KINDS or tensor.layout is not torch.strided or tensor.is_neg():
      raise UnfitError(f"no numbers: {tensor.dtype}")
    if tensor.numel() > MOST * (1 if row is None else self.rows):
      raise UnfitError("too many numbers in a row")
    offsets = np.full([1] * tensor.ndim, tensor.storage_offset() * size)
    for dim, (length, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
      if dim != row:
        steps = np.arange(length) * (stride * size)
        offsets = offsets + steps.reshape([-1 if dim == own else 1 for own in range(tensor.ndim)])
    stride = 0 if row is None else tensor.stride(row) * size
    memory = tensor.untyped_storage().data_ptr()
    strides = self._strides.setdefault(memory, set())
    strides.add(stride)
    if memory in self._written and (len(strides) > 1 or not stride):
      raise UnfitError("memory that is written has several layouts, or no rows")
    kind = KINDS[tensor.dtype]
    return [Cell(memory, stride, offset, kind) for offset in offsets.ravel().tolist()], offsets.shape

  def _load(self, cell: Cell) -> int:
    """Return what a cell holds; a 32-bit integer may be half of one of 64 bits."""
    if cell.place in self._held:
      value = self._held[cell.place]
      known = self.nodes[value].kind
      if known == cell.kind:
        return value
      if known == "l" and cell.kind == "i":
        return self.node("low", "i", value)
      raise UnfitError("memory has two kinds of numbers")
    whole = self._held.get((cell.memory, cell.stride, cell.offset - 4)) if cell.kind == "i" else None
    if whole is not None and self.nodes[whole].kind == "l":
      return self.node("high", "i", whole)
    self._held[cell.place] = self.node("load", cell.kind, self._index(cell))
    return self._held[cell.place]

  def _index(self, cell: Cell) -> int:
    kinds = self._kinds.setdefault(cell.memory, set())
    kinds.add(cell.kind)
    if cell.memory in self._written and len(kinds) > 1:
      raise UnfitError("memory that is written has several kinds of numbers")
    return self.cells.setdefault(cell, len(self.cells))


def row_dimension(tensor: Tensor, rows: int) -> int | None:
  """Return the dimension of a tensor's rows; None if it has none; raise UnfitError if it could be several."""
  found = [dim for dim, length in enumerate(tensor.shape) if length == rows]
  if len(found) > 1:
    raise UnfitError("two dimensions are as long as there are rows")
  return found[0] if found else None
