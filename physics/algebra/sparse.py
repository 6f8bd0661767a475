"""Sparse symmetric matrices and their factors; entries that are known to vanish cost nothing."""

from collections.abc import Mapping, Sequence

from physics.trace.trace import Number

At = tuple[int, int]  # row and column, row >= column


class SparseMatrix:
  """A symmetric matrix [n, n], given by its entries (i, j), i >= j; the others vanish."""

  def __init__(self, n: int, entries: Mapping[At, Number] | None = None) -> None:
    self.n, self.entries = n, dict(entries or {})

  def __getitem__(self, at: At) -> Number:
    return self.entries[at]

  def __contains__(self, at: At) -> bool:
    return at in self.entries

  def __setitem__(self, at: At, value: Number) -> None:
    self.entries[at] = value

  def rows(self) -> list[list[int]]:
    """Return for every row [n] the columns below the diagonal's, nearest first."""
    rows: list[list[int]] = [[] for _ in range(self.n)]
    for i, j in sorted(self.entries, reverse=True):
      if j < i:
        rows[i].append(j)
    return rows

  def add(self, values: Mapping[At, Number]) -> "SparseMatrix":
    """Return the matrix plus another one [n, n], given by its entries."""
    result = SparseMatrix(self.n, self.entries)
    for at, value in values.items():
      result[at] = result.entries.get(at, 0.0) + value
    return result

  def __matmul__(self, x: Sequence[Number]) -> list[Number]:
    y = [self.entries.get((i, i), 0.0) * x[i] for i in range(self.n)]
    for i, row in enumerate(self.rows()):
      for j in row:
        y[i] = y[i] + self[i, j] * x[j]
        y[j] = y[j] + self[i, j] * x[i]
    return y

  def factor(self) -> "SparseFactor":
    """Return the factors of a positive definite matrix, M = L^T D L (MuJoCo's `mj_factorM`).

    A tree's inertia, with entries in row i for its ancestors, factors without fill-in (Featherstone
    2008, section 6.5); other matrices fill in.
    """
    L = SparseMatrix(self.n, self.entries)
    inverse: list[Number] = [0.0] * self.n
    columns = [set(row) for row in self.rows()]
    for k in reversed(range(self.n)):
      inverse[k] = 1.0 / L[k, k]
      row = sorted(columns[k], reverse=True)
      for i in row:
        factor = L[k, i] * inverse[k]
        for j in (j for j in row if j <= i):
          L[i, j] = L.entries.get((i, j), 0.0) - factor * L[k, j]
        columns[i].update(j for j in row if j < i)
        L[k, i] = factor
    return SparseFactor(L, inverse)

  def count_products(self) -> int:
    """Return the number of products that `factor` writes, fill-in included."""
    columns, count = [set(row) for row in self.rows()], 0
    for k in reversed(range(self.n)):
      count += len(columns[k]) * (len(columns[k]) + 1) // 2
      for i in columns[k]:
        columns[i].update(j for j in columns[k] if j < i)
    return count


class SparseFactor:
  """The factors L [n, n] (unit diagonal) and 1 / D [n] of a matrix."""

  def __init__(self, L: SparseMatrix, inverse: list[Number]) -> None:
    self.L, self.inverse, self.rows = L, inverse, L.rows()

  def half_solve(self, x: Sequence[Number]) -> list[Number]:
    """Return L^-T x [n]."""
    x = list(x)
    for i in reversed(range(self.L.n)):
      for j in self.rows[i]:
        x[j] = x[j] - self.L[i, j] * x[i]
    return x

  def finish_solve(self, x: Sequence[Number]) -> list[Number]:
    """Return L^-1 D^-1 x [n]: the rest of the solution after `half_solve`."""
    x = [value * inverse for value, inverse in zip(x, self.inverse, strict=True)]
    for i in range(self.L.n):
      for j in self.rows[i]:
        x[i] = x[i] - self.L[i, j] * x[j]
    return x

  def solve(self, x: Sequence[Number]) -> list[Number]:
    """Return M^-1 x [n] (MuJoCo's `mj_solveM`)."""
    return self.finish_solve(self.half_solve(x))
