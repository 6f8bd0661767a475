"""Contacts of two boxes, as MuJoCo finds them.

Of the directions in which boxes can be apart - the normals of three faces of each, and nine products of their
edges - the one in which they are furthest apart decides. If it is the normal of a face, the facing face of
the other box is clipped against that face, and every remaining corner is a contact, up to eight. If it is a
product of edges, those two edges touch where they are nearest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from physics.algebra.spatial import Matrix, Vector, cross, dot
from physics.collision.geometry import ContactCandidate, Shape
from physics.trace.compact import LaneList
from physics.trace.trace import (
  Mask,
  Number,
  Program,
  Scalar,
  Truth,
  absolute,
  clip,
  maximum,
  minimum,
  negate,
  sqrt,
  where,
)

MOST = 8  # corners of a rectangle clipped against another
SLACK = 1e-6  # relative to the boxes: below it, float32 cannot tell a length from zero
PARALLEL = 1e-12  # squared sine of the angle below which edges have no product
EDGE_BIAS = 1e-6  # share by which a product of edges must be further apart than the best so far
ALIKE = 0.99  # cosine above which a product of edges is taken for the face ...
ALIKE_GAIN = 0.05  # ... unless it is further apart by this share
EDGES = [(i, j) for i in range(3) for j in range(3)]
# Corners of a face in turn, along its two axes, and the vector from each to the next.
CORNERS = ((1.0, -1.0, -1.0, 1.0), (1.0, 1.0, -1.0, -1.0))
WAYS = ((-2.0, 0.0, 2.0, 0.0), (0.0, -2.0, 0.0, 2.0))

Axis = tuple[Truth, Truth]  # whether it is the first of three and, if not, whether it is the second


def box_box(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contacts of two boxes (MuJoCo's `mjc_BoxBox`)."""
  gap, number = _widest_face(one, two)
  with program.when_any(gap < margin):
    edges = _Edges(program, one, two)
    edges.search(gap)
    touching = edges.gap < margin
    with program.when_any(touching):
      face = _Face.of(one, two, number)
      is_edge = edges.surpass(gap, face.normal)
      patch = _Patch(program, face, margin)
      with program.when_any(touching & negate(is_edge)):
        patch.add_faces(touching & negate(is_edge))
      with program.when_any(touching & is_edge):
        patch.add_edges(touching & is_edge, edges)
      yield from patch.candidates()


def _axis(number: Number) -> Axis:
  return number < 0.5, number < 1.5


def _pick(axis: Axis, x: Number, y: Number, z: Number) -> Number:
  return where(axis[0], x, where(axis[1], y, z))


def _column(axis: Axis, matrix: Matrix) -> Vector:
  return Vector(*(_pick(axis, *row) for row in matrix))


def _last(axis: Axis, box: Shape) -> Shape:
  """Return the same box with its axes permuted in cyclic order, this one last."""
  orders = ((1, 2, 0), (2, 0, 1), (0, 1, 2))

  def turned(values: Sequence[Number]) -> tuple[Number, Number, Number]:
    x, y, z = ((values[k] for k in order) for order in orders)
    first, second, last = (_pick(axis, *choices) for choices in zip(x, y, z, strict=True))
    return first, second, last

  return Shape(box.position, Matrix(*(Vector(*turned(row)) for row in box.rotation)), turned(box.size))


def _choose(mask: Truth, one: Shape, two: Shape) -> Shape:
  return Shape.of([where(mask, a, b) for a, b in zip(one.components, two.components, strict=True)])


def _widest_face(one: Shape, two: Shape) -> tuple[Number, Number]:
  """Return the widest gap [m] across a face, and its number: axes of the first box, then of the second."""
  turned = one.rotation.transposed.times(two.rotation)
  tilt = Matrix(*(Vector(*(absolute(x) for x in row)) for row in turned))
  widest: Number = -1e10
  number: Number = 0.0
  for start, box, other, rows in ((0.0, one, two, tilt), (3.0, two, one, tilt.transposed)):
    center = box.rotation.transposed @ (two.position - one.position)
    for i in range(3):
      gap = absolute(center[i]) - box.size[i] - dot(rows[i], other.size)
      wider = gap > widest
      widest, number = where(wider, gap, widest), where(wider, start + i, number)
  return widest, number


class _Edges:
  """The gaps of two boxes in the directions across an edge of each, and the edges with the widest gap."""

  def __init__(self, program: Program, one: Shape, two: Shape) -> None:
    self.program, self.one, self.two = program, one, two
    self.between = two.position - one.position
    self.state = program.array(3)  # gap [m] and axes of the edges with a wider gap than faces

  def search(self, face_gap: Number) -> None:
    """Measure the gaps of all pairs of edges."""
    program, one, two = self.program, self.one, self.two
    turned, center, size1, size2 = (program.array(n) for n in (9, 3, 3, 3))
    turned.fill([x for row in one.rotation.transposed.times(two.rotation) for x in row])
    center.fill(one.rotation.transposed @ self.between)
    size1.fill(one.size)
    size2.fill(two.size)
    self.state.fill([face_gap, -1.0, -1.0])
    with program.loop(len(EDGES)) as pair:
      i1, i2 = (program.table([(a + k) % 3 for a, _ in EDGES], pair) for k in (1, 2))
      j, j1, j2 = (program.table([(b + k) % 3 for _, b in EDGES], pair) for k in range(3))
      x, y = -turned[i2 * 3 + j], turned[i1 * 3 + j]  # the direction along axes i1 and i2; none along i
      square = x * x + y * y
      scale = 1.0 / sqrt(maximum(square, PARALLEL))
      x, y = x * scale, y * scale
      seen = [absolute(x * turned[i1 * 3 + k] + y * turned[i2 * 3 + k]) for k in (j1, j2)]
      radii = dot((absolute(x), absolute(y), *seen), (size1[i1], size1[i2], size2[j1], size2[j2]))
      gap = absolute(x * center[i1] + y * center[i2]) - radii
      better = (square > PARALLEL) & (gap - EDGE_BIAS * absolute(gap) > self.gap)
      numbers = (program.table([float(edge[k]) for edge in EDGES], pair) for k in range(2))
      kept = [where(better, new, old) for new, old in zip((gap, *numbers), self.state.read(), strict=True)]
      self.state.fill(kept)

  @property
  def gap(self) -> Number:
    """The widest gap [m] of edges, or of faces if no edges have a wider one."""
    return self.state[0]

  @property
  def axes(self) -> tuple[Axis, Axis]:
    """The axes along which the best edges run."""
    return _axis(self.state[1]), _axis(self.state[2])

  def directions(self) -> tuple[Vector, Vector, Vector]:
    """Return the directions of the best edges, and the one across both, from the first box to the second."""
    first, second = (
      _column(axis, box.rotation) for axis, box in zip(self.axes, (self.one, self.two), strict=True)
    )
    across = cross(first, second)
    square = maximum(dot(across, across), PARALLEL)
    across = across * where(dot(across, self.between) < 0.0, -1.0 / sqrt(square), 1.0 / sqrt(square))
    return first, second, across

  def surpass(self, face_gap: Number, face_normal: Vector) -> Truth:
    """Return whether edges decide: along the face's normal, their gap must be clearly wider than its gap."""
    _, _, across = self.directions()
    clear = self.gap >= face_gap + ALIKE_GAIN * absolute(face_gap)
    return (self.state[1] > -0.5) & (clear | (absolute(dot(across, face_normal)) <= ALIKE))

  def contact(self) -> tuple[Number, Vector, Vector]:
    """Return distance, normal and point where the best edges, of limited length, are nearest."""
    first, second, normal = self.directions()
    half1, half2 = (_pick(axis, *box.size) for axis, box in zip(self.axes, (self.one, self.two), strict=True))
    middle1 = _edge_middle(self.one, self.axes[0], normal)
    middle2 = self.between + _edge_middle(self.two, self.axes[1], -normal)
    apart, cosine = middle2 - middle1, dot(first, second)
    along1, along2 = dot(first, apart), dot(second, apart)
    across = cross(first, second)
    at1 = clip((along1 - cosine * along2) / maximum(dot(across, across), PARALLEL), -half1, half1)
    at2 = clip(cosine * at1 - along2, -half2, half2)
    at1 = clip(along1 + cosine * at2, -half1, half1)
    point1, point2 = middle1 + first * at1, middle2 + second * at2
    return dot(point2 - point1, normal), normal, self.one.position + (point1 + point2) * 0.5


def _edge_middle(box: Shape, axis: Axis, direction: Vector) -> Vector:
  """Return the middle, from the box's centre, of the edge along an axis that is furthest in a direction."""
  local = box.rotation.transposed @ direction
  x, y, z = (where(c < 0.0, -half, half) for c, half in zip(local, box.size, strict=True))
  return box.rotation @ Vector(_pick(axis, 0.0, x, x), _pick(axis, y, 0.0, y), _pick(axis, z, z, 0.0))


@dataclass(frozen=True)
class _Face:
  """The face that decides and the other box's facing face, along its two sides and its outward normal."""

  normal: Vector
  sides: tuple[Vector, Vector]
  half: tuple[Number, Number]  # half lengths [m] of the sides
  center: Vector
  is_first: Truth  # whether it belongs to the first box
  facing: Vector  # middle of the other box's facing face,
  edges: tuple[Vector, Vector]  # and its half sides

  @staticmethod
  def of(one: Shape, two: Shape, number: Number) -> "_Face":
    """Return a face, given by number."""
    is_first = number < 2.5
    box = _last(_axis(where(is_first, number, number - 3.0)), _choose(is_first, one, two))
    other = _choose(is_first, two, one)
    between, (side1, side2, normal) = other.position - box.position, box.rotation.transposed
    normal = normal * where(dot(normal, between) < 0.0, -1.0, 1.0)
    frame = Matrix(side1, side2, normal)
    x, y, z = (absolute(dot(normal, axis)) for axis in other.rotation.transposed)
    facing = _last(((y <= x) & (z <= x), z <= y), other)
    u, v, w = frame.times(facing.rotation).transposed
    middle = frame @ between + w * where(w[2] > 0.0, -facing.size[2], facing.size[2])
    middle = Vector(middle[0], middle[1], middle[2] - box.size[2])
    edges = (u * facing.size[0], v * facing.size[1])
    center = box.position + normal * box.size[2]
    return _Face(normal, (side1, side2), box.size[:2], center, is_first, middle, edges)


class _Patch:
  """The contacts of a pair of boxes: points on a plane and the distance of the boxes there."""

  def __init__(self, program: Program, face: _Face, margin: Number) -> None:
    self.program, self.face, self.margin = program, face, margin
    self.corners = LaneList(program, MOST)
    self.corners.clear()
    for name in ("x", "y", "distance", "exists"):
      self.corners.field(name, Scalar)
    # the origin of corners, the direction of distance, and 1 if it leads to the second box or else -1
    self.plane = program.array(7)
    self.plane.fill([*face.center, *face.normal, where(face.is_first, 1.0, -1.0)])

  def add_faces(self, counts: Truth) -> None:
    """Add the corners of the facing face clipped by the sides of the face."""
    face = self.face
    u, v = face.edges
    area = u[0] * v[1] - u[1] * v[0]
    with self.program.loop(4) as k:
      at_u, at_v, way_u, way_v = (self.program.table(values, k) for values in (*CORNERS, *WAYS))
      start, way = face.facing + u * at_u + v * at_v, u * way_u + v * way_v
      enter, leave = self._within(start, way)
      self._add(counts & (enter <= leave), start + way * enter)
      self._add(counts & (enter <= leave), start + way * leave)
      x, y = at_u * face.half[0] - face.facing[0], at_v * face.half[1] - face.facing[1]
      a, b = (x * v[1] - y * v[0]) / area, (u[0] * y - u[1] * x) / area
      inside = maximum(absolute(a), absolute(b)) <= 1.0
      self._add(counts & inside, face.facing + u * a + v * b)

  def _within(self, start: Vector, way: Vector) -> tuple[Number, Number]:
    """Return where in [0, 1] a path enters and leaves the face; it misses if it leaves before it enters."""
    enter: Number = 0.0
    leave: Number = 1.0
    for x, dx, half in zip(start[:2], way[:2], self.face.half, strict=True):
      along = absolute(dx) < SLACK * half
      inverse = 1.0 / where(along, 1.0, dx)
      one, two = (-half - x) * inverse, (half - x) * inverse
      passes = where(absolute(x) <= half * (1.0 + SLACK), 0.0, 2.0)
      enter = maximum(enter, where(along, passes, minimum(one, two)))
      leave = minimum(leave, where(along, 1.0, maximum(one, two)))
    return enter, leave

  def add_edges(self, counts: Truth, edges: _Edges) -> None:
    """Add the contact of two edges."""
    distance, normal, point = edges.contact()
    values = (*(point - normal * (0.5 * distance)), *normal, 1.0)
    self.plane.fill([where(counts, new, old) for new, old in zip(values, self.plane.read(), strict=True)])
    self._add(counts, Vector(0.0, 0.0, distance))

  def _add(self, counts: Truth, corner: Vector) -> None:
    """Add a corner if the boxes are within the margin there and there is none yet at the same point."""
    x, y, distance = corner
    width, depth = self.face.half
    near = (SLACK * SLACK) * (width * width + depth * depth)
    new = self.program.variable(counts & (distance < self.margin), Mask)
    with self.corners.each() as other:
      dx, dy = other["x"] - x, other["y"] - y
      new[0] = new[0] & negate((other["exists"] > 0.0) & (dx * dx + dy * dy < near))
    exists = where(new[0], 1.0, 0.0)
    self.corners.push(new[0], {"x": x, "y": y, "distance": distance, "exists": exists})

  def candidates(self) -> Iterator[ContactCandidate]:
    """Yield the contacts."""
    plane, (side1, side2) = self.plane.read(), self.face.sides
    base, outward, sign = Vector(*plane[:3]), Vector(*plane[3:6]), plane[6]
    with self.corners.each() as corner:
      distance = corner["distance"]

      def resolve() -> tuple[Number, Vector, Vector]:
        point = base + side1 * corner["x"] + side2 * corner["y"] + outward * (0.5 * distance)
        return distance, outward * sign, point

      yield ContactCandidate(corner["exists"] > 0.0, resolve)
