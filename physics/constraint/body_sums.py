"""Sums over the contacts of each body: forces, or the entries of a stiffness, in group memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from physics.trace.trace import Array, Integer, Number, Program


class BodySums:
  """One sum [width] for each of some bodies, zero at first; its place is that of its body among `bodies`.

  `memory` [at least len(bodies) * width] holds the sums; it may serve others when these have been read.
  """

  def __init__(
    self, program: Program, bodies: Sequence[int], width: int, memory: Array | None = None
  ) -> None:
    self.program, self.bodies, self.width = program, list(bodies), width
    self.memory = program.array(width * len(self.bodies)) if memory is None else memory
    self.memory.fill([0.0] * (width * len(self.bodies)))

  def place(self, body: Integer) -> Integer:
    """Return the place of a body among `bodies`; ValueError where it is known to be none."""
    if isinstance(body, int):
      return self.bodies.index(body)
    places = {each: place for place, each in enumerate(self.bodies)}
    return self.program.table([places.get(each, 0) for each in range(max(places) + 1)], body)

  def add(self, place: Integer, values: Sequence[Number]) -> None:
    """Add `values` [width] to the sum at a place."""
    at = place * self.width
    for k, value in enumerate(values):
      self.memory[at + k] = self.memory[at + k] + value

  def read(self) -> Iterator[tuple[int, list[Number]]]:
    """Yield each body with its sum [width]."""
    for place, body in enumerate(self.bodies):
      yield body, self.memory.read(place * self.width, self.width)
