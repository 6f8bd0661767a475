"""Symmetric matrices over the degrees of freedom of trees, factored in written-out code.

A tree's inertia has entries for a degree of freedom and those above it. Contacts between branches add others,
which cost nothing where no lane has such a contact.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise

from physics.algebra.sparse import At
from physics.algebra.spatial import dot, total
from physics.trace.trace import Array, Index, Mask, Number, Program, Truth, absolute, negate

Block = tuple[int, int]  # the numbers of two limbs, the first not before the second


class BranchMatrix:
  """A positive definite matrix [n, n]; `factor` replaces it by its factors, H = L^T D L.

  Degrees of freedom that follow each other without a branch are a limb. The last limb is eliminated first, so
  limbs that nothing couples stay apart (Featherstone 2008, section 6.5). `memory` keeps D L.
  """

  def __init__(self, program: Program, parents: Sequence[int], entries: Mapping[At, Number]) -> None:
    """Begin with the entries (i, j) for j above i or i itself; `parents` [n] are -1 at a root."""
    self.program, self.n = program, len(parents)
    self.limbs = limbs(parents)
    self.above = limbs_above(parents, self.limbs)
    self.places = {at: place for place, at in enumerate(entries)}
    self.blocks: dict[Block, range] = {}  # couplings between two limbs, zeroed at their first link
    for block in self._coupled():
      start, pairs = len(self.places), _pairs(*(self.limbs[each] for each in block))
      self.places |= {at: start + k for k, at in enumerate(at for at in pairs if at not in entries)}
      self.blocks[block] = range(start, len(self.places))
    self.memory: Array = program.array(len(self.places))
    self.inverse: Array = program.array(self.n)  # 1 / D
    self.linked: Array = program.array(len(self.limbs) ** 2, Mask)  # where branches are coupled
    self.begun: Array = program.array(len(self.limbs) ** 2, Index)  # 1 where they are in any lane
    self.memory.fill([*entries.values()])
    with program.loop(len(self.linked)) as place:
      self.linked[place] = False
      self.begun[place] = 0

  def add(self, entries: Mapping[At, Number]) -> None:
    """Add a matrix that is given by its entries (i, j), for j above i or i itself."""
    for at, value in entries.items():
      self._add(at, value)

  def push(self, columns: Sequence[Mapping[int, Number]]) -> None:
    """Add V V^T for columns V [n], given by degree of freedom; all have the same ones."""
    rows = {dof: [column[dof] for column in columns] for dof in columns[0]}
    parts = [[dof for dof in limb if dof in rows] for limb in self.limbs]
    sizes = [total(absolute(value) for dof in part for value in rows[dof]) for part in parts]
    touched = [negate(size <= 0.0) for size in sizes]  # also where it is nan
    for one, part in enumerate(parts):
      with self._where(touched[one]):
        for two in range(one + 1):
          both = touched[one] & touched[two] if two < one else touched[one]
          with self._where(both if two < one else True):
            self._link((one, two), both)
            for i, j in _pairs(part, parts[two]):
              self._add((i, j), dot(rows[i], rows[j]))

  def factor(self) -> None:
    """Replace the matrix by its factors."""
    for limb in reversed(range(len(self.limbs))):
      self._factor_limb(limb)
      for other, lanes in self._linked(limb):
        with self._where(lanes):
          self._eliminate(limb, other)
      for other, lanes in self._linked(limb):
        with self._where(lanes):
          self._update(limb, other, lanes)

  def solve(self, b: Sequence[Number]) -> list[Number]:
    """Return the solution [n] of H x = b."""
    x = self.program.array(self.n)
    x.fill(b)
    for limb in reversed(range(len(self.limbs))):
      for k in reversed(self.limbs[limb]):
        self._carry(x, k, self._above(limb, k))
      for other, lanes in self._linked(limb):
        with self._where(lanes):
          for k in self.limbs[limb]:
            self._carry(x, k, self.limbs[other])
    for limb in range(len(self.limbs)):
      for other, lanes in self._linked(limb):
        with self._where(lanes):
          for k in self.limbs[limb]:
            x[k] = x[k] - self._along(x, k, self.limbs[other])
      for k in self.limbs[limb]:
        x[k] = (x[k] - self._along(x, k, self._above(limb, k))) * self.inverse[k]
    return x.read()

  def _factor_limb(self, limb: int) -> None:
    """Eliminate a limb from its own rows and the rows of the limbs above."""
    for k in reversed(self.limbs[limb]):
      row = {i: self._at(k, i) for i in self._above(limb, k)}
      inverse = 1.0 / self._at(k, k)
      self.inverse[k] = inverse
      for i, value in row.items():
        factor = value * inverse
        for j, too in row.items():
          if j <= i:
            self._add((i, j), -(factor * too))

  def _eliminate(self, limb: int, other: int) -> None:
    """Eliminate a limb from its own rows, in the columns of one that is coupled with it."""
    for k in reversed(self.limbs[limb]):
      for i in range(self.limbs[limb].start, k):
        factor = self._at(k, i) * self.inverse[k]
        for j in self.limbs[other]:
          self._add((i, j), -(factor * self._at(k, j)))

  def _update(self, limb: int, other: int, lanes: Mask) -> None:
    """Eliminate a limb from the rows and columns of one that is coupled with it."""
    for third in self.above[limb]:
      self._subtract(limb, (max(other, third), min(other, third)), lanes)
    for third, too in self._linked(limb):
      if third < other:
        with self._where(lanes & too):
          self._subtract(limb, (other, third), lanes & too)
    self._subtract(limb, (other, other), lanes)

  def _subtract(self, limb: int, block: Block, lanes: Truth) -> None:
    """Subtract the product of a limb's rows from a block."""
    self._link(block, lanes)
    own, (rows, columns) = self.limbs[limb], (self.limbs[each] for each in block)
    scaled = {(k, i): self._at(k, i) * self.inverse[k] for k in own for i in rows}
    for i, j in _pairs(rows, columns):
      self._add((i, j), -total(scaled[k, i] * self._at(k, j) for k in own))

  def _carry(self, x: Array, k: int, columns: Sequence[int]) -> None:
    """Subtract columns of a row of L, times the element k of x, from x."""
    scaled = x[k] * self.inverse[k]
    for j in columns:
      x[j] = x[j] - self._at(k, j) * scaled

  def _along(self, x: Array, k: int, columns: Sequence[int]) -> Number:
    """Return the product of columns of a row of D L with x."""
    return total(self._at(k, j) * x[j] for j in columns)

  def _above(self, limb: int, k: int) -> list[int]:
    """Return the degrees of freedom above one, nearest first."""
    own = range(self.limbs[limb].start, k)
    return [*reversed(own), *(i for third in self.above[limb] for i in reversed(self.limbs[third]))]

  def _coupled(self) -> Iterator[Block]:
    """Yield the pairs of limbs that contacts may couple."""
    for limb, above in enumerate(self.above):
      yield from ((limb, other) for other in range(limb) if other not in above)

  def _linked(self, limb: int) -> Iterator[tuple[int, Mask]]:
    """Yield the limbs before one that are not above it, and the lanes that couple them."""
    for one, other in self.blocks:
      if one == limb:
        yield other, self.linked[self._place(limb, other)]

  def _link(self, block: Block, lanes: Truth) -> None:
    """Mark two limbs as coupled in some lanes, unless they always are."""
    if block in self.blocks:
      place = self._place(*block)
      with self.program.when_equal(self.begun[place], 0):
        self.begun[place] = 1
        with self.program.loop(self.blocks[block].stop, self.blocks[block].start) as at:
          self.memory[at] = 0.0
      self.linked[place] = self.linked[place] | lanes

  def _place(self, limb: int, other: int) -> int:
    return limb * len(self.limbs) + other

  def _at(self, i: int, j: int) -> Number:
    return self.memory[self.places[i, j]]

  def _add(self, at: At, value: Number) -> None:
    place = self.places[at]
    self.memory[place] = self.memory[place] + value

  def _where(self, lanes: Truth) -> AbstractContextManager[None]:
    return self.program.when_any(lanes)


def limbs(parents: Sequence[int]) -> list[range]:
  """Return the degrees of freedom [n] of trees as limbs, given those above them."""
  forks = {parent for parent, count in Counter(parents).items() if count > 1}
  starts = [k for k, parent in enumerate(parents) if parent < 0 or parent != k - 1 or parent in forks]
  return [range(start, end) for start, end in pairwise([*starts, len(parents)])]


def limbs_above(parents: Sequence[int], limbs: Sequence[range]) -> list[list[int]]:
  """Return for every limb those on the way to the root, nearest first."""
  above: list[list[int]] = []
  for limb in limbs:
    nearest = [k for k, other in enumerate(limbs) if parents[limb.start] in other]
    above.append([*nearest, *(further for k in nearest for further in above[k])])
  return above


def _pairs(rows: Sequence[int], columns: Sequence[int]) -> Iterator[At]:
  """Yield the entries (i, j), i >= j, of a block."""
  return ((i, j) for i in rows for j in columns if i >= j)
