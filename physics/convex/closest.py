"""The closest points of two cores (Gilbert, Johnson, Keerthi 1988), in all lanes at once.

The difference a - b of two cores is convex too; its distance from the origin is theirs. A simplex of up to
four of its points walks towards the origin: each step adds the point that is farthest towards it, and keeps
the corners of the part that is closest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from physics.algebra.spatial import MINVAL, Vector, cross, dot, select
from physics.convex.core import Convex, difference
from physics.trace.trace import Array, Number, Program, Truth, maximum, negate, sqrt, where

TOUCH = 1e-6  # distance [m] of two cores below which they count as overlapping
CORNER = 9  # numbers of a corner: two points, two vertices, weight
LEAST = 1e-20  # the least squared length [m^2] or area that is divided by
FLAT = 1e-12  # squared sine of the angle of an edge and a face below which a tetrahedron has no inside
NEVER = 1e10  # more than any squared distance [m^2]


@dataclass(frozen=True)
class Closest:
  """Where two cores are closest, in lanes where they are apart.

  In the others `overlap` holds, or `beyond`: the distance is more than the caller asked for. There the
  numbers have no meaning, but for `separation`, which is where the search was, and for the corners.
  """

  separation: Vector  # from b's point to a's [m]
  on_a: Vector  # a's point [m]
  vertices_a: list[Number]  # [3] vertices of the part of a that is closest; equal ones count once
  vertices_b: list[Number]
  overlap: Truth
  beyond: Truth
  inside: Truth  # the origin is inside a tetrahedron of points of a - b
  corners: list[list[Number]]  # [4] of it: point, point of a, vertices of a and b


class _Simplex:
  """Up to three corners: points of the difference and of a, vertices of a and b, weights (0: unused).

  A fourth one has been found last.
  """

  def __init__(self, program: Program) -> None:
    self.memory: Array = program.array(3 * CORNER)
    self.memory.fill([0.0] * (3 * CORNER))
    self.last: Array = program.array(CORNER - 1)
    self.last.fill([0.0] * (CORNER - 1))

  def corners(self) -> list[list[Number]]:
    """Return the numbers of each corner, the weight last."""
    return [self.memory.read(CORNER * k, CORNER) for k in range(3)]

  def keep(self, running: Truth, new: Sequence[Number], weights: Sequence[Number]) -> None:
    """Set the weights [3 old, new] in running lanes; the new corner takes the first place that weighs 0."""
    free: Truth = running
    for k, corner in enumerate(self.corners()):
      takes = free & (weights[k] <= 0.0)
      free = free & negate(takes)
      row = [where(takes, x, y) for x, y in zip(new, corner, strict=False)]
      row.append(where(takes, weights[3], where(running, weights[k], corner[-1])))
      for j, value in enumerate(row):
        self.memory[CORNER * k + j] = value

  def find(self, running: Truth, new: Sequence[Number]) -> None:
    """Set the last corner in running lanes."""
    self.last.fill([where(running, x, y) for x, y in zip(new, self.last.read(), strict=True)])

  def tetrahedron(self) -> list[list[Number]]:
    """Return the numbers of all four corners, without weights."""
    return [*(corner[:-1] for corner in self.corners()), self.last.read()]

  def point(self) -> Vector:
    """Return a's point in the closest part."""
    on_a = Vector(0.0, 0.0, 0.0)
    for corner in self.corners():
      on_a = on_a + Vector(*corner[3:6]) * corner[-1]
    return on_a

  def vertices(self, field: int) -> list[Number]:
    """Return a vertex of each corner; an unused corner repeats the vertex of a used one."""
    used: Number = 0.0
    for corner in self.corners():
      used = where(corner[-1] > 0.0, corner[field], used)
    return [where(corner[-1] > 0.0, corner[field], used) for corner in self.corners()]


def closest(a: Convex, b: Convex, reach: Number, iterations: int, lanes: Truth = True) -> Closest:
  """Return where two cores are closest in some lanes, or that they are beyond `reach` [m] or overlap.

  The other lanes count as beyond.
  """
  program = a.program
  simplex = _Simplex(program)
  apart = a.position - b.position
  state = program.array(8)  # separation, its squared length, then as truths: runs, overlap, beyond, inside
  start = select(dot(apart, apart) > LEAST, apart, Vector(1.0, 0.0, 0.0))
  runs, rests = where(lanes, 1.0, 0.0), where(lanes, 0.0, 1.0)
  state.fill([*start, NEVER, runs, 0.0, rests, 0.0])
  with program.loop(iterations):
    x, y, z, before, runs, *_ = state.read()
    running = runs > 0.5
    program.break_if_none(running)
    separation = Vector(x, y, z)
    length = sqrt(maximum(dot(separation, separation), MINVAL * MINVAL))
    point, on_a, *vertices = difference(a, b, separation * (-1.0 / length), running)
    beyond = running & (dot(separation, point) > reach * length)
    old = [(Vector(*corner[:3]), corner[-1] > 0.0) for corner in simplex.corners()]
    weights, nearest, inside = _nearest(old, point)
    square = dot(nearest, nearest)
    nearer = square < before
    moves = running & ~beyond & (nearer | inside)
    found_corner = (*point, *on_a, *vertices)
    simplex.find(moves, found_corner)
    simplex.keep(moves & ~inside, found_corner, weights)
    overlap = moves & (inside | (square < TOUCH * TOUCH))
    state.fill(
      [
        *select(moves & ~overlap, nearest, separation),
        where(moves, square, before),
        where(moves & ~overlap, 1.0, 0.0),
        where(overlap, 1.0, state[5]),
        where(beyond, 1.0, state[6]),
        where(moves & inside, 1.0, state[7]),
      ]
    )
  x, y, z, _, _, *found = state.read()
  overlap, beyond, inside = (truth > 0.5 for truth in found)
  on_a, (vertices_a, vertices_b) = simplex.point(), (simplex.vertices(field) for field in (6, 7))
  separation, corners = Vector(x, y, z), simplex.tetrahedron()
  return Closest(separation, on_a, vertices_a, vertices_b, overlap, beyond, inside, corners)


def _nearest(old: Sequence[tuple[Vector, Truth]], new: Vector) -> tuple[list[Number], Vector, Truth]:
  """Return the point of a simplex that is closest to the origin: weights [3 old, new], the point, or inside.

  `old` holds three corners and whether they are in use. The new corner belongs to the closest part, because
  it lies farther towards the origin than the old ones.
  """
  weights: list[Number] = [0.0, 0.0, 0.0, 1.0]
  best, square = new, dot(new, new)
  inside: Truth = True
  for parts in [*combinations(range(3), 1), *combinations(range(3), 2)]:
    exists: Truth = True
    for k in parts:
      exists = exists & old[k][1]
    shares, valid = _foot([old[k][0] for k in parts], new)
    point = new * (1.0 - sum(shares, 0.0))
    for k, share in zip(parts, shares, strict=True):
      point = point + old[k][0] * share
    here = dot(point, point)
    better = exists & valid & (here < square)
    best, square = select(better, point, best), where(better, here, square)
    candidate: list[Number] = [0.0, 0.0, 0.0, 1.0 - sum(shares, 0.0)]
    for k, share in zip(parts, shares, strict=True):
      candidate[k] = share
    weights = [where(better, x, y) for x, y in zip(candidate, weights, strict=True)]
  for k in range(3):
    inside = inside & old[k][1]
  return weights, best, inside & _contains_origin([*(point for point, _ in old), new])


def _foot(corners: Sequence[Vector], new: Vector) -> tuple[list[Number], Truth]:
  """Return the origin's weights on one or two corners, the rest being the new one's; valid if all are > 0."""
  if len(corners) == 1:
    edge = corners[0] - new
    share = -dot(new, edge) / maximum(dot(edge, edge), LEAST)
    return [share], (share > 0.0) & (share < 1.0)
  u, v = corners[0] - new, corners[1] - new
  normal = cross(u, v)
  square = dot(normal, normal)
  across = normal * (1.0 / maximum(square, LEAST * LEAST))
  first, second = dot(cross(v, new), across), dot(cross(new, u), across)
  left = new + u * first + v * second  # rounding leaves some of it along an edge that is long
  first, second = first + dot(cross(v, left), across), second + dot(cross(left, u), across)
  return [first, second], (square > LEAST * LEAST) & (first > 0.0) & (second > 0.0) & (first + second < 1.0)


def _contains_origin(corners: Sequence[Vector]) -> Truth:
  """Return whether the origin is inside a tetrahedron: on the inner side of its four faces."""
  inside: Truth = True
  for k, opposite in enumerate(corners):
    one, two, three = (corner for i, corner in enumerate(corners) if i != k)
    normal, span = cross(two - one, three - one), opposite - one
    inner, origin = dot(normal, span), -dot(normal, one)
    has_volume = inner * inner > FLAT * dot(normal, normal) * dot(span, span)
    inside = inside & has_volume & (inner * origin > 0.0)
  return inside
