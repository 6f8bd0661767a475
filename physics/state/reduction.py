"""Reductions of a quantity over the time steps of one launch: mean and maximum."""

from collections.abc import Sequence

from physics.trace.trace import Array, Number, Program, maximum


class Mean:
  """The mean of `size` values over time steps."""

  def __init__(self, program: Program, size: int) -> None:
    self.sums, self.count = program.array(size), program.variable(0.0)
    self.sums.fill([0.0] * size)

  def add(self, values: Sequence[Number]) -> None:
    """Add the values [size] of a time step."""
    self.sums.fill([total + value for total, value in zip(self.sums.read(), values, strict=True)])
    self.count[0] = self.count[0] + 1.0

  def result(self) -> list[Number]:
    """Return the mean [size] of the added values."""
    share = 1.0 / self.count[0]
    return [total * share for total in self.sums.read()]


class Maximum:
  """The maximum of each of `size` values over time steps."""

  def __init__(self, program: Program, size: int) -> None:
    self.greatest: Array = program.array(size)
    self.greatest.fill([-1e30] * size)

  def add(self, values: Sequence[Number]) -> None:
    """Add the values [size] of a time step."""
    self.greatest.fill([maximum(a, b) for a, b in zip(self.greatest.read(), values, strict=True)])

  def result(self) -> list[Number]:
    """Return the maximum [size] of the added values."""
    return self.greatest.read()


LAST = "last"
REDUCTIONS: dict[str, type[Mean | Maximum]] = {"mean": Mean, "max": Maximum}
