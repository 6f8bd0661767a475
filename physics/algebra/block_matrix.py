"""Symmetric matrices in group memory, factored by loops over their blocks.

The text of a program does not grow with the matrix, and blocks that vanish in every lane cost nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Protocol

from physics.algebra.sparse import At, SparseMatrix
from physics.algebra.spatial import dot, total
from physics.trace.each import follow, numbers, places
from physics.trace.trace import Array, Index, Integer, Mask, Number, Program, Truth, absolute, negate, where

SIDE = 6  # rows of a block: the degrees of freedom of a free body
AREA = SIDE * SIDE
CELLS = list(product(range(SIDE), range(SIDE)))
SPARSE = 8  # block rows from which on many blocks stay empty, and are not even cleared
UNROLLED = 4000  # products beyond which a factorisation is a loop: longer text takes longer to compile


class Factor(Protocol):
  """The factors of a matrix [n, n]."""

  def solve(self, b: Sequence[Number], /) -> list[Number]:
    """Return the solution [n] for a right side [n]."""


class Operator(Protocol):
  """A matrix that has its own factors."""

  def factor(self) -> Factor:
    """Return its factors."""


def factored(program: Program, matrix: SparseMatrix | Operator) -> Factor:
  """Return the factors of a positive definite matrix: written out, or found by loops if they are large."""
  if not isinstance(matrix, SparseMatrix) or matrix.count_products() <= UNROLLED:
    return matrix.factor()
  blocks = BlockMatrix(program, matrix.n)
  blocks.add(matrix.entries)
  blocks.factor()
  return blocks


class BlockMatrix:
  """A positive definite matrix [n, n], at first zero; `factor` replaces it by its factors L D L^T.

  It is kept in reverse order, the last degree of freedom first. So light distal links are eliminated before
  what carries them, and the inertia of a tree does not fill in.
  """

  def __init__(self, program: Program, n: int) -> None:
    self.program, self.n = program, n
    self.count = -(-n // SIDE)  # block rows
    self.starts = [row * (row + 1) // 2 for row in range(self.count)]  # first block of each row
    blocks = self.count * (self.count + 1) // 2
    self.memory: Array = program.array(blocks * AREA)  # of blocks on the diagonal, the lower half counts
    self.filled: Array = program.array(blocks, Mask)  # where a block may differ from zero
    self.used: Array = program.array(blocks, Index)  # 1 if it may in some lane
    self.inverse: Array = program.array(self.count * SIDE)  # 1 / D
    self.scaled: Array = program.array(self.count * AREA)  # L D in the column that is eliminated
    with program.loop(blocks) as block:
      self.filled[block] = False
      if self.count < SPARSE:
        self._clear(block)
      else:
        self.used[block] = 0
    self._add({(row, row): 1.0 for row in range(self.n, self.count * SIDE)})

  def add(self, entries: Mapping[At, Number]) -> None:
    """Add a matrix that is given by its entries (i, j), i >= j."""
    self._add({(self._row(j), self._row(i)): value for (i, j), value in entries.items()})

  def touch(self, entries: Iterable[At]) -> None:
    """Mark entries (i, j), i >= j, as possibly nonzero: `add_entry` adds to them."""
    places_of = {self.starts[self._row(j) // SIDE] + self._row(i) // SIDE for i, j in entries}
    for block in places(self.program, sorted(places_of)):
      self._fill(block, True)

  def add_entry(self, i: Integer, j: Integer, value: Number) -> None:
    """Add to an entry (i, j), i >= j, in a loop over rows or columns."""
    rows = [self._row(dof) for dof in range(self.n)]
    of_row = [self.starts[row // SIDE] * AREA + row % SIDE * SIDE for row in rows]
    of_column = [row // SIDE * AREA + row % SIDE for row in rows]
    at = follow(of_row, j) + follow(of_column, i)
    self.memory[at] = self.memory[at] + value

  def push(self, columns: Sequence[Mapping[int, Number]]) -> None:
    """Add V V^T for columns V [n], given by degree of freedom; all have the same ones."""
    program, width = self.program, len(columns)
    ordered = [{self._row(dof): value for dof, value in column.items()} for column in columns]
    rows = sorted({row // SIDE for row in ordered[0]})
    part = width * SIDE
    V, touched = program.array(len(rows) * part), program.array(len(rows), Mask)
    for place, row in enumerate(rows):
      values = [column.get(row * SIDE + k, 0.0) for column in ordered for k in range(SIDE)]
      for k, value in enumerate(values):
        V[place * part + k] = value
      touched[place] = negate(total([absolute(value) for value in values]) <= 0.0)  # also where it is nan
    with program.loop(len(rows)) as i, program.when_any(touched[i]), program.loop(i + 1) as j:
      both = touched[i] & touched[j]
      with program.when_any(both):
        block = program.table([self.starts[row] for row in rows], i) + program.table(rows, j)
        one, two = V.read(i * part, part), V.read(j * part, part)
        self._fill(block, both)
        for cell, (a, b) in enumerate(CELLS):
          at = block * AREA + cell
          self.memory[at] = self.memory[at] + dot(one[a::SIDE], two[b::SIDE])

  def push_pair(
    self, bodies: Sequence[Number], parts: Sequence[Sequence[Sequence[Number]]], lanes: Truth
  ) -> None:
    """Add V V^T in some lanes for columns V that each lane has in two blocks of its own.

    Both are numbered from the first degree of freedom on, the lesser number first. `parts` [2, SIDE, columns]
    are the rows of V there.
    """
    program, last = self.program, self.count - 1
    diagonal = [self.starts[last - body] + last - body for body in range(self.count)]
    with program.each_value(bodies[0], lanes) as (first, of_first):
      one = _masked(parts[0], of_first)
      self._add_product(program.table(diagonal, first), one, one, of_first)
      with program.each_value(bodies[1], of_first) as (second, here):
        one, two = _masked(parts[0], here), _masked(parts[1], here)
        self._add_product(program.table(diagonal, second), two, two, here)
        self._add_product(program.table(self.starts[::-1], first) - second + last, one, two, here)

  def _add_product(
    self, block: Index, one: Sequence[Sequence[Number]], two: Sequence[Sequence[Number]], lanes: Truth
  ) -> None:
    """Add A B^T [SIDE, SIDE] for rows of A and B by degree of freedom; of B = A only what counts."""
    self._fill(block, lanes)
    for cell, (a, b) in enumerate(CELLS):
      if one is not two or a >= b:
        at = block * AREA + cell
        self.memory[at] = self.memory[at] + dot(one[SIDE - 1 - a], two[SIDE - 1 - b])

  def factor(self) -> None:
    """Replace the matrix by its factors, unit lower triangular L and D."""
    program = self.program
    with program.loop(self.count) as k:
      self._factor_diagonal(k)
      for i, here in self._below(k):
        self._eliminate(i, k, here)
      for i, here in self._below(k):
        row = self.scaled.read(i * AREA, AREA)
        with program.loop(i + 1, k + 1) as j:
          other = self._block(j, k)
          both = self.filled[here] & self.filled[other]
          with program.when_any(both):
            self._fill(self._block(i, j), both)
            self._subtract(self._block(i, j), row, self._cells(other))

  def solve(self, b: Sequence[Number]) -> list[Number]:
    """Return the solution [n] of L D L^T x = b."""
    program = self.program
    x = program.array(self.count * SIDE)
    self._fill_reversed(x, b)
    with program.loop(self.count) as k:
      part, lower = x.read(k * SIDE, SIDE), self._cells(self._block(k, k))
      for a in range(SIDE):
        part[a] = part[a] - dot(lower[a * SIDE : a * SIDE + a], part[:a])
        x[k * SIDE + a] = part[a]
      for i, here in self._below(k):
        cells = self._cells(here)
        for a in range(SIDE):
          x[i * SIDE + a] = x[i * SIDE + a] - dot(cells[a * SIDE : (a + 1) * SIDE], part)
    with program.loop(self.count) as done:
      k = program.table([*reversed(range(self.count))], done)
      for a in range(SIDE):
        x[k * SIDE + a] = x[k * SIDE + a] * self.inverse[k * SIDE + a]
      for i, here in self._below(k):
        part, cells = x.read(i * SIDE, SIDE), self._cells(here)
        for a in range(SIDE):
          x[k * SIDE + a] = x[k * SIDE + a] - dot(cells[a::SIDE], part)
      part, lower = x.read(k * SIDE, SIDE), self._cells(self._block(k, k))
      for a in reversed(range(SIDE)):
        part[a] = part[a] - dot(lower[(a + 1) * SIDE + a :: SIDE], part[a + 1 :])
        x[k * SIDE + a] = part[a]
    return self._reversed(x)

  def _fill_reversed(self, x: Array, b: Sequence[Number]) -> None:
    """Write a right side [n] in reverse order, then zeros."""
    if isinstance(b, Array):
      with self.program.loop(self.n) as i:
        x[i * -1 + (self.n - 1)] = b[i]
      for row in range(self.n, len(x)):
        x[row] = 0.0
    else:
      x.fill([*reversed(b), *[0.0] * (len(x) - self.n)])

  def _reversed(self, x: Array) -> list[Number]:
    """Return a solution [n] in the order of the degrees of freedom."""
    if not self.program.repeats:
      return list(reversed(x.read(0, self.n)))
    result = numbers(self.program, self.n)
    with self.program.loop(self.n) as i:
      result[i] = x[i * -1 + (self.n - 1)]
    return result

  def _row(self, dof: int) -> int:
    return self.n - 1 - dof

  def _add(self, entries: Mapping[At, Number]) -> None:
    """Add entries by row and column."""
    places = {(i, j): self.starts[i // SIDE] + j // SIDE for i, j in entries}
    for block in sorted(set(places.values())):
      self._fill(block, True)
    for (i, j), value in entries.items():
      at = places[i, j] * AREA + i % SIDE * SIDE + j % SIDE
      self.memory[at] = self.memory[at] + value

  def _fill(self, block: Integer, lanes: Truth) -> None:
    """Mark a block, zero at first, as possibly nonzero in some lanes."""
    if self.count >= SPARSE:
      with self.program.when_equal(self.used[block], 0):
        self.used[block] = 1
        self._clear(block)
    self.filled[block] = self.filled[block] | lanes

  def _clear(self, block: Integer) -> None:
    with self.program.loop(AREA) as cell:
      self.memory[block * AREA + cell] = 0.0

  def _block(self, row: Integer, column: Integer) -> Integer:
    return self.program.table(self.starts, row) + column

  def _cells(self, block: Integer) -> list[Number]:
    return self.memory.read(block * AREA, AREA)

  def _below(self, column: Index) -> Iterator[tuple[Index, Integer]]:
    """Loop over the blocks below the diagonal that some lane fills: row, and number of the block."""
    with self.program.loop(self.count, column + 1) as row:
      block = self._block(row, column)
      with self.program.when_any(self.filled[block]):
        yield row, block

  def _factor_diagonal(self, k: Index) -> None:
    """Factor a block on the diagonal."""
    start = self._block(k, k) * AREA
    cells = {(a, b): self.memory[start + a * SIDE + b] for a, b in CELLS if a >= b}
    for c in range(SIDE):
      inverse = 1.0 / cells[c, c]
      self.inverse[k * SIDE + c] = inverse
      scaled = {a: cells[a, c] for a in range(c + 1, SIDE)}
      for a, value in scaled.items():
        cells[a, c] = value * inverse
        self.memory[start + a * SIDE + c] = cells[a, c]
        for b in range(c + 1, a + 1):
          cells[a, b] = cells[a, b] - cells[a, c] * scaled[b]

  def _eliminate(self, i: Index, k: Index, block: Integer) -> None:
    """Divide a block by its column's factor: keep L, and L D in `scaled`."""
    cells, lower = self._cells(block), self._cells(self._block(k, k))
    for a in range(SIDE):
      row: list[Number] = []
      for b in range(SIDE):
        value = cells[a * SIDE + b] - dot(row, lower[b * SIDE : b * SIDE + b])
        row.append(value)
        self.scaled[i * AREA + a * SIDE + b] = value
        self.memory[block * AREA + a * SIDE + b] = value * self.inverse[k * SIDE + b]

  def _subtract(self, block: Integer, one: Sequence[Number], two: Sequence[Number]) -> None:
    """Subtract A B^T of two blocks A and B."""
    for cell, (a, b) in enumerate(CELLS):
      at = block * AREA + cell
      self.memory[at] = self.memory[at] - dot(one[a * SIDE : (a + 1) * SIDE], two[b * SIDE : (b + 1) * SIDE])


def _masked(rows: Sequence[Sequence[Number]], lanes: Truth) -> list[list[Number]]:
  """Return rows, zeroed in other lanes."""
  return [[where(lanes, value, 0.0) for value in row] for row in rows]
