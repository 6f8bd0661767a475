"""Low-rank solves: a factored matrix plus V V^T for few columns V, found as the program runs (Woodbury)."""

from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any

from physics.algebra.spatial import dot
from physics.dynamics.articulated import ArticulatedFactor
from physics.trace.each import Sum, inner, mapped, places
from physics.trace.trace import Index, Number, Program, sqrt


class LowRank:
  """The low-rank correction of one solve; columns are pushed one by one, at most `capacity`.

  With H = L^T D L and W = L^-T V, the half solution z = L^-T b becomes z - W (I + W^T D^-1 W)^-1 W^T D^-1 z.
  """

  def __init__(self, program: Program, factor: ArticulatedFactor, z: list[Number], capacity: int) -> None:
    self.program, self.factor, self.z, self.capacity = program, factor, z, capacity
    self.rank = program.variable(0, Index)
    self.half = program.array(capacity * len(self.z))  # W [nv, capacity], column by column
    self.matrix = program.array(capacity * capacity)  # W^T D^-1 W, lower triangle; then its factor
    self.right = program.array(capacity)  # W^T D^-1 z; then the solution

  def push(self, columns: Sequence[Mapping[int, Number]]) -> None:
    """Append columns of V [nv], given by degree of freedom."""
    for column in columns:
      self._push(column)

  def _push(self, column: Mapping[int, Number]) -> None:
    n, rank = len(self.z), self.rank[0]
    w = self.factor.half_solve([column.get(dof, 0.0) for dof in range(n)])
    scaled = mapped(mul, w, self.factor.inverse)
    for k in places(self.program, range(n)):
      self.half[rank * n + k] = w[k]
    self.right[rank] = inner(scaled, self.z)
    with self.program.loop(rank + 1) as other:
      self.matrix[rank * self.capacity + other] = self._product(scaled, other)
    self.rank[0] = rank + 1

  def _product(self, scaled: Any, column: Index) -> Number:
    """Return the product of numbers [nv] with a column of W."""
    n = len(self.z)
    if not self.program.repeats:
      return dot(scaled, self.half.read(column * n, n))
    sum_ = Sum(self.program)
    with self.program.loop(n) as k:
      sum_.add(scaled[k] * self.half[column * n + k])
    return sum_.total

  def corrected(self) -> list[Number]:
    """Return the corrected half solution [nv]."""
    rank, n = self.rank[0], len(self.z)
    self._solve(rank)
    z = self.program.array(n)
    z.fill(self.z)
    with self.program.loop(rank) as i:
      for k in places(self.program, range(n)):
        z[k] = z[k] - self.right[i] * self.half[i * n + k]
    return z.values()

  def _solve(self, rank: Index) -> None:
    """Solve (I + matrix) y = right in place by Cholesky; the diagonal of the factor is kept inverted."""
    S, y, size = self.matrix, self.right, self.capacity
    total, loop = self.program.variable(0.0), self.program.loop
    with loop(rank) as i:
      with loop(i) as j:
        total[0] = S[i * size + j]
        with loop(j) as k:
          total[0] = total[0] - S[i * size + k] * S[j * size + k]
        S[i * size + j] = total[0] * S[j * size + j]
        y[i] = y[i] - S[i * size + j] * y[j]
      total[0] = S[i * size + i] + 1.0
      with loop(i) as k:
        total[0] = total[0] - S[i * size + k] * S[i * size + k]
      S[i * size + i] = 1.0 / sqrt(total[0])
      y[i] = y[i] * S[i * size + i]
    with loop(rank) as done:
      i = rank - done - 1
      with loop(rank, i + 1) as k:
        y[i] = y[i] - S[k * size + i] * y[k]
      y[i] = y[i] * S[i * size + i]
