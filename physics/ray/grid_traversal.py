"""Grid traversal of height fields by rays, from cell to cell."""

from physics.algebra.spatial import MINVAL, Vector
from physics.collision.hfield import HeightField
from physics.ray.ray import NONE, ray_box, ray_box_faces
from physics.trace.trace import Mask, Number, Program, Truth, absolute, clip, floor, maximum, minimum, where

SLACK = 0.01  # room above and below the elevations, by the field's height, so that rounding loses no hit


def ray_height_field(program: Program, field: HeightField, origin: Vector, direction: Vector) -> Number:
  """Return the distance to a height field: its surface, the sides below it, the box that it stands on."""
  x, y = field.half
  below = Vector(origin[0], origin[1], origin[2] - 0.5 * field.base)
  base = ray_box(below, direction, (x, y, -0.5 * field.base))
  march = _Traversal(program, field, origin, direction)
  with program.when_any(march.active[0]):
    march.run()
  return minimum(minimum(base, _ray_sides(program, field, origin, direction)), march.best[0])


def _ray_sides(program: Program, field: HeightField, origin: Vector, direction: Vector) -> Number:
  """Return the distance to the vertical sides, from zero up to the outermost elevations."""
  top = max(field.heights)
  above = Vector(origin[0], origin[1], origin[2] - 0.5 * top)
  best: Number = NONE
  for face, t in enumerate(ray_box_faces(above, direction, (*field.half, 0.5 * top))[:4]):
    across, along = face // 2, 1 - face // 2
    edge = float(field.cells[across] * (face % 2))  # the grid line that the side stands on
    coordinate = (origin[along] + t * direction[along] + field.half[along]) * (1.0 / field.spacing[along])
    first = clip(floor(coordinate), 0.0, field.cells[along] - 1.0)
    low, high = (field.height(program, *((edge, k) if across else (k, edge))) for k in (first, first + 1.0))
    under = origin[2] + t * direction[2] < low + (high - low) * (coordinate - first)
    best = where(under, minimum(best, t), best)
  return best


class _Traversal:
  """The path of each lane's ray over the grid: its cell, when it enters, its height above the ground.

  A time is a distance from the origin in lengths of the direction.
  """

  def __init__(self, program: Program, field: HeightField, origin: Vector, direction: Vector) -> None:
    self.program, self.field, self.origin, self.direction = program, field, origin, direction
    top = max(field.heights)
    room = SLACK * (top - field.base)
    begin, self.end, passes = _slab(origin[2], direction[2], -room, top + room)
    for i, half in enumerate(field.half):
      first, last, within = _slab(origin[i], direction[i], -half, half)
      begin, self.end, passes = maximum(begin, first), minimum(self.end, last), passes & within
    begin = maximum(begin, 0.0)
    self.time, self.best, self.above = (program.variable(value) for value in (begin, NONE, 0.0))
    starts = (
      clip(floor(x), 0.0, n - 1.0) for x, n in zip(self._coordinates(begin), field.cells, strict=True)
    )
    self.cell = [program.variable(start) for start in starts]
    self.active = program.variable(passes & (begin <= self.end), Mask)

  def run(self) -> None:
    """Visit the cells in order until the ray passes through the surface or leaves."""
    self.above[0] = self._above(self._corners(), self.time[0])
    with self.program.loop(sum(self.field.cells)):
      self.program.break_if_none(self.active[0])
      self._visit()

  def _visit(self) -> None:
    """Look for the surface in a cell, on either side of its diagonal, and go on to the next."""
    corners, enters, active = self._corners(), self.time[0], self.active[0]
    exits = [self._exit(i) for i in range(2)]
    leaves = maximum(minimum(minimum(exits[0], exits[1]), self.end), enters)
    middle = self._crosses_diagonal(enters, leaves)
    heights = [self.above[0], self._above(corners, middle), self._above(corners, leaves)]
    first, second = _zero((enters, middle), heights[:2]), _zero((middle, leaves), heights[1:])
    found = where(active, minimum(first, second), NONE)
    self.best[0] = minimum(self.best[0], found)
    self.time[0], self.above[0] = leaves, heights[2]
    active = active & (found >= NONE) & (leaves < self.end)
    for i, turn in enumerate((exits[0] <= exits[1], exits[1] < exits[0])):
      cell = self.cell[i][0] + where(turn, where(self.direction[i] > 0.0, 1.0, -1.0), 0.0)
      active = active & (cell >= 0.0) & (cell < float(self.field.cells[i]))
      self.cell[i][0] = cell
    self.active[0] = active

  def _coordinates(self, time: Number) -> list[Number]:
    """Return the coordinates of the ray at a time, in cells along x and y."""
    field = self.field
    return [
      (self.origin[i] + time * self.direction[i] + field.half[i]) * (1.0 / field.spacing[i]) for i in range(2)
    ]

  def _exit(self, i: int) -> Number:
    """Return when the ray reaches the cell's next grid line across an axis."""
    speed, half = self.direction[i], self.field.half[i]
    line = (self.cell[i][0] + where(speed > 0.0, 1.0, 0.0)) * self.field.spacing[i] - half
    moves = absolute(speed) > MINVAL
    return where(moves, (line - self.origin[i]) / where(moves, speed, 1.0), NONE)

  def _crosses_diagonal(self, enters: Number, leaves: Number) -> Number:
    """Return when the ray crosses the diagonal from the first corner of its cell to the last, or leaves."""
    u, v = (x - cell[0] for x, cell in zip(self._coordinates(enters), self.cell, strict=True))
    rate = self.direction[0] * (1.0 / self.field.spacing[0]) - self.direction[1] * (
      1.0 / self.field.spacing[1]
    )
    moves = absolute(rate) > MINVAL
    time = enters + (v - u) / where(moves, rate, 1.0)
    return where(moves & (time > enters) & (time < leaves), time, leaves)

  def _corners(self) -> list[Number]:
    """Return the elevations about the cell: by row, then by column."""
    column, row = (cell[0] for cell in self.cell)
    return [self.field.height(self.program, row + i, column + j) for i in (0.0, 1.0) for j in (0.0, 1.0)]

  def _above(self, corners: list[Number], time: Number) -> Number:
    """Return the ray's height above the cell's triangles at a time."""
    u, v = (x - cell[0] for x, cell in zip(self._coordinates(time), self.cell, strict=True))
    h00, h01, h10, h11 = corners
    left = h00 + v * (h10 - h00) + u * (h11 - h10)
    right = h00 + u * (h01 - h00) + v * (h11 - h01)
    return self.origin[2] + time * self.direction[2] - where(u < v, left, right)


def _slab(origin: Number, speed: Number, low: Number, high: Number) -> tuple[Number, Number, Truth]:
  """Return when a ray is between two planes, and whether it ever is."""
  moves = absolute(speed) > MINVAL
  inverse = 1.0 / where(moves, speed, 1.0)
  one, two = (low - origin) * inverse, (high - origin) * inverse
  inside = (origin >= low) & (origin <= high)
  return where(moves, minimum(one, two), -NONE), where(moves, maximum(one, two), NONE), moves | inside


def _zero(times: tuple[Number, Number], heights: list[Number]) -> Number:
  """Return when a linear function is zero between two times; `NONE` if it is not."""
  (begin, end), (before, after) = times, heights
  changes = ((before <= 0.0) & (after >= 0.0)) | ((before >= 0.0) & (after <= 0.0))
  drop = before - after
  fraction = clip(before / where(absolute(drop) < MINVAL, 1.0, drop), 0.0, 1.0)
  return where(changes, begin + (end - begin) * fraction, NONE)
