"""Sums over the contacts of each body: forces, or the entries of a stiffness, in group memory."""

from collections.abc import Iterator, Sequence

from physics.trace.each import Each, follow, places
from physics.trace.trace import Array, Index, Integer, Number, Program


class BodySums:
  """One sum [width] for each body in `bodies`, in their order; each begins at zero.

  `memory` [at least len(bodies) * width] holds the sums. Others may use it once the sums have been read. With
  `few`, only bodies to which something is added have a sum, so that the others cost nothing.
  """

  def __init__(
    self, program: Program, bodies: Sequence[int], width: int, memory: Array | None = None, few: bool = False
  ) -> None:
    self.program, self.bodies, self.width = program, list(bodies), width
    self.memory = program.array(width * len(self.bodies)) if memory is None else memory
    self.begun = program.array(len(self.bodies), Index) if few else None  # 1 where a body has a sum
    if self.begun is None:
      for at in places(program, range(width * len(self.bodies))):
        self.memory[at] = 0.0
    else:
      self.begun.fill([0] * len(self.bodies))

  def index(self, body: Integer) -> Integer:
    """Return the index of a body in `bodies`; ValueError if it is a constant that is not there."""
    if isinstance(body, int):
      return self.bodies.index(body)
    indices = {each: index for index, each in enumerate(self.bodies)}
    return self.program.table([indices.get(each, 0) for each in range(max(indices) + 1)], body)

  def add(self, index: Integer, values: Sequence[Number]) -> None:
    """Add `values` [width] to the sum at an index."""
    at = index * self.width
    if self.begun is not None:
      with self.program.when_equal(self.begun[index], 0):
        self.begun[index] = 1
        for k in range(self.width):
          self.memory[at + k] = 0.0
    for k, value in enumerate(values):
      self.memory[at + k] = self.memory[at + k] + value

  def at(self, body: int) -> list[Number]:
    """Return the sum [width] of a body in `bodies`."""
    return self.memory.read(self.bodies.index(body) * self.width, self.width)

  def read(self) -> Iterator[tuple[Each, list[Number]]]:
    """Yield each body with its sum [width]."""
    for index in places(self.program, range(len(self.bodies))):
      yield follow(self.bodies, index), self.memory.read(index * self.width, self.width)
