"""Contacts of spheres and capsules with boxes, as MuJoCo finds them.

A capsule has one contact where its segment is nearest to the box. It has a second one where the segment,
followed from there over the box, ends or leaves the box.
"""

from collections.abc import Iterator

from physics.algebra.spatial import MINVAL, Vector, dot, select, total
from physics.collision.geometry import ContactCandidate, Shape
from physics.trace.trace import (
  Array,
  Index,
  Number,
  Program,
  Truth,
  absolute,
  clip,
  maximum,
  minimum,
  negate,
  sqrt,
  where,
)

FAR = 1e10  # more than any squared distance [m^2]
LEVEL = 1e-6  # sine of the angle [rad] with a face below which rounding hides it
ALIGNED = 1e-15  # [m^4] below which the squared area between an edge and the segment counts as zero
# The four edges along an axis, by the sides of the box they lie on, in the order of MuJoCo's corners.
SIDES = {0: ("-+-+", "--++"), 1: ("--++", "-+-+"), 2: ("-+-+", "--++")}
AXIS = [axis for axis in SIDES for _ in range(4)]
SIGNS = [[float(f"{sign}1") for axis in SIDES for sign in SIDES[axis][k]] for k in range(2)]


def sphere_box(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of a sphere with a box (MuJoCo's `mjc_SphereBox`)."""
  yield _ball_candidate(one.position, one.size[0], two, margin)


def _ball_candidate(center: Vector, radius: Number, box: Shape, margin: Number) -> ContactCandidate:
  """Return the contact of a ball; if its centre is inside, the nearest face pushes it out."""
  local = box.rotation.transposed @ (center - box.position)
  inward = _clamped(local, box.size) - local
  square, reach = dot(inward, inward), radius + margin

  def resolve() -> tuple[Number, Vector, Vector]:
    inside = square < 1e-30
    depth, from_face = _nearest_face(local, box.size)
    level = where(inside, -depth, sqrt(square))
    direction = select(inside, from_face, inward * (1.0 / sqrt(maximum(square, 1e-30))))
    normal, distance = box.rotation @ direction, level - radius
    return distance, normal, center + normal * (radius + 0.5 * distance)

  return ContactCandidate(square < reach * reach, resolve)


def _clamped(point: Vector, size: tuple[Number, Number, Number]) -> Vector:
  return Vector(*(clip(x, -half, half) for x, half in zip(point, size, strict=True)))


def _nearest_face(point: Vector, size: tuple[Number, Number, Number]) -> tuple[Number, Vector]:
  """Return how deep [m] a point is below the nearest face, and the direction from that face to the point."""
  x, y, z = (half - absolute(p) for p, half in zip(point, size, strict=True))
  is_x, is_z = (x <= y) & (x <= z), (z < x) & (z < y)
  faces = (is_x, negate(is_x | is_z), is_z)
  direction = (where(face, where(p > 0.0, -1.0, 1.0), 0.0) for face, p in zip(faces, point, strict=True))
  return minimum(minimum(x, y), z), Vector(*direction)


def capsule_box(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the two contacts of a capsule with a box (MuJoCo's `mjc_CapsuleBox`)."""
  to_box = two.rotation.transposed
  center = to_box @ (one.position - two.position)
  half_axis = to_box @ (one.rotation.column(2) * one.size[1])
  reach = one.size[0] + margin
  near: Truth = True
  for x, along, half in zip(center, half_axis, two.size, strict=True):
    near = near & (absolute(x) <= half + absolute(along) + reach)
  with program.when_any(near):  # else a face of the box separates them in every lane
    nearest = _Nearest(program, center, half_axis, two.size)
    nearest.try_ends()
    nearest.try_edges()
    first = nearest.at
    second, exists = nearest.follow()
    ends, masks = program.array(2), program.array(2)
    ends.fill([first, second])
    masks.fill([1.0, where(exists, 1.0, 0.0)])
    with program.loop(2) as i:
      ball = one.position + one.rotation.column(2) * (one.size[1] * ends[i])
      candidate = _ball_candidate(ball, one.size[0], two, margin)
      yield ContactCandidate(candidate.active & (masks[i] > 0.0), candidate.resolve)


class _Nearest:
  """The search for the point of a segment that is nearest to a box, in the frame of the box.

  It keeps four facts of the best candidate: the squared distance, the position in [-1, 1] on the segment, the
  point of the box, and the axes along which that point is free to move: one for an edge, two for a face,
  three inside, none for a corner.
  """

  def __init__(
    self, program: Program, center: Vector, half_axis: Vector, size: tuple[Number, Number, Number]
  ) -> None:
    self.program, self.center, self.half_axis, self.size = program, center, half_axis, size
    self.best: Array = program.array(8)
    self.best.fill([FAR] + [0.0] * 7)

  @property
  def at(self) -> Number:
    """The position on the segment, in [-1, 1]."""
    return self.best[1]

  def try_ends(self) -> None:
    """Try the ends of the segment, if they are inside or over a face."""
    for end in (-1.0, 1.0):
      tip = self.center + self.half_axis * end
      point = _clamped(tip, self.size)
      gap = tip - point
      free = Vector(*(where(absolute(x) > 0.0, 0.0, 1.0) for x in gap))
      square = dot(gap, gap)
      self._keep((square < self.best[0]) & (total(free) > 1.5), (square, end, *point, *free))

  def _keep(self, better: Truth, values: tuple[Number, ...]) -> None:
    for k, value in enumerate(values):
      self.best[k] = where(better, value, self.best[k])

  def try_edges(self) -> None:
    """Try all edges that are not parallel to the segment."""
    frame = self.program.array(9)
    frame.fill([*self.center, *self.half_axis, *self.size])
    with self.program.loop(len(AXIS)) as edge:
      axes = [self.program.table([(axis + k) % 3 for axis in AXIS], edge) for k in range(3)]
      center, half_axis, size = ([frame[axis + k] for axis in axes] for k in (0, 3, 6))
      corner = [self.program.table(signs, edge) * half for signs, half in zip(SIGNS, size[1:], strict=True)]
      self._try_edge(axes, corner, center, half_axis, size[0])

  def _try_edge(
    self, axes: list[Index], corner: list[Number], center: list[Number], half_axis: list[Number], half: Number
  ) -> None:
    """Try an edge; components are along it first, then across.

    s in [-1, 1] is the position on the segment, e in [-1, 1] the position on the edge. As in MuJoCo, an edge
    counts as its end if e was limited, even if e then moves back because s is limited too.
    """
    to_edge = [c - p for c, p in zip(corner, center[1:], strict=True)]
    across, towards = dot(half_axis[1:], half_axis[1:]), dot(half_axis[1:], to_edge)
    s = towards / maximum(across, MINVAL)
    e = (center[0] + half_axis[0] * s) / half
    end = _beyond(e)
    from_end = towards + half_axis[0] * (half * end - center[0])
    s = where(absolute(end) > 0.0, from_end / (across + half_axis[0] * half_axis[0]), s)
    limited = clip(s, -1.0, 1.0)
    e = where(absolute(s) > 1.0, (center[0] + half_axis[0] * limited) / half, e)
    end = where(absolute(e) > 1.0, _beyond(e), end)
    gap = [half * clip(e, -1.0, 1.0) - center[0], *to_edge]
    square = total((x - a * limited) * (x - a * limited) for x, a in zip(gap, half_axis, strict=True))
    better = (square < self.best[0] - MINVAL) & (half * half * across > ALIGNED)
    on_edge = absolute(end) < 0.5
    self._keep(better, (square, limited))
    values = ((half * where(on_edge, e, end), where(on_edge, 1.0, 0.0)), (corner[0], 0.0), (corner[1], 0.0))
    for axis, (point, free) in zip(axes, values, strict=True):
      self.best[axis + 2] = where(better, point, self.best[axis + 2])
      self.best[axis + 5] = where(better, free, self.best[axis + 5])

  def follow(self) -> tuple[Number, Truth]:
    """Return the position where the segment, followed over the box, ends or leaves it, and whether it does.

    From a face, the search goes towards the other end of the segment. From an edge or a corner, it goes where
    the segment is over the box. This needs a direction of the segment that is inwards along one axis and
    outwards along another: of the two axes across an edge, or of all three at a corner.
    """
    s, point, free = self.best[1], Vector(*self.best.read(2, 3)), self.best.read(5, 3)
    freedom, reach = total(free), [absolute(a) for a in self.half_axis]
    sign = [where(a > 0.0, 1.0, -1.0) for a in self.half_axis]
    inwards = self._inwards(point, free, sign)
    balance = total((1.0 - f) * i for f, i in zip(free, inwards, strict=True))
    is_face = freedom > 1.5
    direction = where(
      is_face, -s, where(freedom > 0.5, self._over_edge(free, inwards), self._over_corner(inwards))
    )
    step = 1.0 - direction * s
    for k in range(3):
      stretch = (self.size[k] - direction * sign[k] * point[k]) / maximum(reach[k], MINVAL)
      over = where(is_face, free[k], maximum(free[k], inwards[k] * direction))
      step = where(over > 0.5, minimum(step, stretch), step)
    return s + direction * step, (freedom < 2.5) & (is_face | (absolute(balance) < 1.5))

  def _inwards(self, point: Vector, free: list[Number], sign: list[Number]) -> list[Number]:
    """Return for each axis whether the segment leads inwards from a point of the box, 1, or outwards, -1.

    Where rounding would decide, the segment may lie on the box and has to be followed: it counts as outwards
    if it is inwards along other axes.
    """
    flat = LEVEL * sqrt(dot(self.half_axis, self.half_axis))
    steep = [where(absolute(a) > flat, 1.0, 0.0) for a in self.half_axis]
    inwards = [where(p > 0.0, -a, a) for p, a in zip(point, sign, strict=True)]
    lead = total(s * (1.0 - f) * i for s, f, i in zip(steep, free, inwards, strict=True))
    return [where(s > 0.5, i, where(lead > 0.0, -1.0, 1.0)) for s, i in zip(steep, inwards, strict=True)]

  def _over_edge(self, free: list[Number], inwards: list[Number]) -> Number:
    """Return the direction in which the segment is inwards along the steeper axis across the edge."""
    reach = [absolute(a) for a in self.half_axis]
    steeper = (where(reach[k - 2] > reach[k - 1], inwards[k - 2], inwards[k - 1]) for k in range(3))
    return dot(free, steeper)

  def _over_corner(self, inwards: list[Number]) -> Number:
    """Return the direction in which the segment is over an edge, if it is nearly along it, or over a face.

    One axis is inwards where the other two are outwards: the edge is along that axis, the face across it.
    """
    balance = total(inwards)
    square = dot(self.half_axis, self.half_axis)
    odd = total(where(i * balance < 0.0, a * a, 0.0) for i, a in zip(inwards, self.half_axis, strict=True))
    return where(odd > 0.5 * square, -balance, balance)


def _beyond(x: Number) -> Number:
  """Return the side on which a number is beyond [-1, 1], zero if it is not."""
  return where(x > 1.0, 1.0, where(x < -1.0, -1.0, 0.0))
