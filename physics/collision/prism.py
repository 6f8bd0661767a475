"""Distances between a solid and a triangular prism, the piece of a height field that a geom touches.

Coordinates: u and v along the legs of the triangle's right angle, z up; they may be left-handed. The prism
stands over u >= 0, v >= 0, u / width + v / depth <= 1. Its underside is flat, its top passes through three
heights.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

from physics.algebra.spatial import AXES, Vector, cross, dot, select, total
from physics.trace.trace import Array, Number, Program, Truth, absolute, clip, maximum, minimum, sqrt, where

INSIDE = 1e-6  # distance [m] to the prism below which a core counts as inside, as in MuJoCo
TIE = 1e-5  # relative difference that rounding can make
SHARP = 1e-4  # angle [rad] below which an axis and an edge count as parallel
LEVEL = 1e-9  # slope of a segment [m] along a normal below which it never crosses the face
NEVER = 1e10  # more than any overlap or squared distance


@dataclass(frozen=True)
class Solid:
  """A sphere, capsule or box: the span of zero, one or three half axes about a centre, grown by a radius."""

  center: Vector
  half_axes: tuple[Vector, ...]
  radius: Number

  def extent(self, direction: Vector) -> Number:
    """Return how far [m] the solid reaches from its centre along a unit direction."""
    return total(absolute(dot(axis, direction)) for axis in self.half_axes) + self.radius

  def lowest(self, direction: Vector) -> Vector:
    """Return the point that is furthest against a unit direction."""
    point = self.center - direction * self.radius
    for axis in self.half_axes:
      point = point - axis * where(dot(axis, direction) < 0.0, -1.0, 1.0)
    return point


@dataclass(frozen=True)
class Prism:
  """A prism: lengths of the legs [m], height of the underside, heights of the top's three corners."""

  width: float
  depth: float
  base: float
  heights: tuple[Number, Number, Number]

  @property
  def slopes(self) -> tuple[Number, Number]:
    """The slopes of the top along u and v."""
    corner, along_u, along_v = self.heights
    return (along_u - corner) * (1.0 / self.width), (along_v - corner) * (1.0 / self.depth)

  @property
  def vertices(self) -> tuple[Vector, ...]:
    """The corners [6]: of the top, then below them."""
    corners = ((0.0, 0.0), (self.width, 0.0), (0.0, self.depth))
    top = (Vector(*corner, z) for corner, z in zip(corners, self.heights, strict=True))
    return (*top, *(Vector(*corner, self.base) for corner in corners))

  @property
  def center(self) -> Vector:
    """A point inside."""
    return reduce(add, self.vertices) * (1.0 / 6.0)

  @property
  def edges(self) -> Iterator[tuple[Vector, Vector]]:
    """Start and span of the edges [9]."""
    v = self.vertices
    for a, b in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (0, 3), (1, 4), (2, 5)):
      yield v[a], v[b] - v[a]

  @property
  def faces(self) -> Iterator["Face"]:
    """Faces [5]: top, underside, and three walls, the slanted one first."""
    rise_u, rise_v = self.slopes
    steepness = 1.0 / sqrt(1.0 + rise_u * rise_u + rise_v * rise_v)
    yield Vector(-rise_u * steepness, -rise_v * steepness, steepness), self.heights[0] * steepness
    yield -AXES[2], -self.base
    slant = math.hypot(self.width, self.depth)
    yield Vector(self.depth / slant, self.width / slant, 0.0), self.width * self.depth / slant
    yield -AXES[0], 0.0
    yield -AXES[1], 0.0

  def highest(self, direction: Vector) -> tuple[Vector, Number]:
    """Return the corner furthest along a direction and how far [m] that is."""
    down = direction[2] < 0.0
    corners = [
      select(down, below, above) for above, below in zip(self.vertices[:3], self.vertices[3:], strict=True)
    ]
    point, most = corners[0], dot(corners[0], direction)
    for corner in corners[1:]:
      height = dot(corner, direction)
      further = height > most
      point, most = select(further, corner, point), where(further, height, most)
    return point, most

  def closest(self, p: Vector) -> Vector:
    """Return the point closest to another; that point itself if it is inside."""
    width, depth = self.width, self.depth
    slope_u, slope_v = self.slopes
    beyond = p[0] * depth + p[1] * width > width * depth
    t = clip(((width - p[0]) * width + p[1] * depth) * (1.0 / (width * width + depth * depth)), 0.0, 1.0)
    u = where(beyond, width - t * width, clip(p[0], 0.0, width))
    v = where(beyond, t * depth, clip(p[1], 0.0, depth))
    level = self.heights[0] + slope_u * u + slope_v * v
    beside = Vector(u, v, maximum(p[2], self.base))
    return select(p[2] <= level, beside, self._closest_on_top(p))

  def _closest_on_top(self, p: Vector) -> Vector:
    normal, offset = next(self.faces)
    best = p - normal * (dot(normal, p) - offset)
    within = (best[0] >= 0.0) & (best[1] >= 0.0)
    within = within & (best[0] * self.depth + best[1] * self.width <= self.width * self.depth)
    square = where(within, -1.0, NEVER)
    for (start, span), _ in zip(self.edges, range(3), strict=False):
      point = start + span * clip(dot(p - start, span) / dot(span, span), 0.0, 1.0)
      between = p - point
      nearer = dot(between, between) < square
      best, square = select(nearer, point, best), where(nearer, dot(between, between), square)
    return best

  def contains_part(self, center: Vector, half_axis: Vector) -> Truth:
    """Return whether a segment passes through the inside."""
    enters, leaves = _clipped(self.faces, center, half_axis)
    return enters < leaves

  def quick_distance(self, solid: Solid, reach: Number) -> Number:
    """Return a lower bound [m] of a solid's distance by quick tests, `NEVER` if they show it beyond `reach`.

    The bound of a sphere is exact while its centre is outside. Feet are spheres, and a false alarm in one
    lane would separate the contacts of the others in the list that the solver loops over.
    """
    top, _, *walls = self.faces
    if not solid.half_axes:
      square, _, _, inside = _sphere_distance(self, solid)
      return where(inside, -NEVER, sqrt(square) - solid.radius)
    if len(solid.half_axes) == 3:
      gaps = [_before(face, solid) for face in (top, walls[0])]
      return reduce(maximum, gaps + [self._before_box_faces(solid, axis) for axis in solid.half_axes])
    room, (axis,) = solid.radius + reach, solid.half_axes
    enters, leaves = _clipped([(normal, offset + room) for normal, offset in walls], solid.center, axis)
    normal, offset = top
    slope = dot(normal, axis)
    lowest = dot(normal, solid.center) + minimum(enters * slope, leaves * slope) - offset
    return where(enters <= leaves, lowest - solid.radius, NEVER)

  def _before_box_faces(self, box: Solid, axis: Vector) -> Number:
    """Return the distance of the whole prism before the nearer of two faces of a box."""
    length = sqrt(dot(axis, axis))
    normal = axis * (1.0 / length)
    middle = dot(normal, box.center)
    return maximum(middle - self.highest(normal)[1], -self.highest(-normal)[1] - middle) - length


Face = tuple[Vector, Number]  # outward unit normal, offset from the origin


def _before(face: Face, solid: Solid) -> Number:
  """Return the distance of a whole solid before a face."""
  normal, offset = face
  return dot(normal, solid.center) - solid.extent(normal) - offset


def _clipped(faces: Iterable[Face], center: Vector, half_axis: Vector) -> tuple[Number, Number]:
  """Return where in [-1, 1] a segment enters and leaves the inside of all faces; reversed if it misses."""
  enters: Number = -1.0
  leaves: Number = 1.0
  for normal, offset in faces:
    room, along = offset - dot(normal, center), dot(normal, half_axis)
    level = absolute(along) < LEVEL
    t = room / where(level, 1.0, along)
    enters = maximum(enters, where(along < -LEVEL, t, where(level & (room < 0.0), 2.0, -1.0)))
    leaves = minimum(leaves, where(along > LEVEL, t, 1.0))
  return enters, leaves


class Best:
  """The least value offered so far in each lane, and the vectors offered with it."""

  def __init__(self, program: Program) -> None:
    self.memory: Array = program.array(7)
    self.memory.fill([NEVER, *[0.0] * 6])

  def offer(self, value: Number, one: Vector, two: Vector) -> None:
    """Keep the vectors where the value is less than all before by more than rounding."""
    before = self.memory.read()
    less = value < before[0] - TIE * absolute(before[0])
    for k, (new, old) in enumerate(zip((value, *one, *two), before, strict=True)):
      self.memory[k] = where(less, new, old)

  @property
  def result(self) -> tuple[Number, Vector, Vector]:
    """The least value with its vectors."""
    value, *vectors = self.memory.read()
    return value, Vector(*vectors[:3]), Vector(*vectors[3:])


def meet(program: Program, prism: Prism, solid: Solid) -> tuple[Number, Vector, Vector]:
  """Return distance [m], normal out of the prism and the point halfway between the surfaces.

  The solid is a sphere or a capsule. If its core, a point or a segment, is outside, the distance is that of
  the closest points. Else it is minus the least translation that ends the overlap, found by the separating
  axis theorem.
  """
  square, foot, between, inside = _core_distance(program, prism, solid)
  length = sqrt(maximum(square, INSIDE * INSIDE))
  normal, distance = between * (1.0 / length), length - solid.radius
  result = program.array(7)
  result.fill([distance, *normal, *(foot + normal * (0.5 * distance))])
  with program.when_any(inside):
    overlap, *vectors = least_overlap(program, prism, solid)
    for k, value in enumerate((-overlap, *vectors[0], *vectors[1])):
      result[k] = where(inside, value, result[k])
  values = result.read()
  return values[0], Vector(*values[1:4]), Vector(*values[4:])


def _core_distance(program: Program, prism: Prism, solid: Solid) -> tuple[Number, Vector, Vector, Truth]:
  """Return squared distance from prism to core, closest point, vector from there, whether they intersect."""
  if not solid.half_axes:
    return _sphere_distance(prism, solid)
  (axis,) = solid.half_axes
  best = Best(program)
  for end in (solid.center + axis, solid.center - axis):
    foot = prism.closest(end)
    between = end - foot
    best.offer(dot(between, between), foot, between)
  for start, span in each_edge(program, prism):
    foot, between = closest_on_lines(start, span, solid.center, axis)
    best.offer(dot(between, between), foot, between)
  square, foot, between = best.result
  return square, foot, between, (square < INSIDE * INSIDE) | prism.contains_part(solid.center, axis)


def _sphere_distance(prism: Prism, sphere: Solid) -> tuple[Number, Vector, Vector, Truth]:
  foot = prism.closest(sphere.center)
  between = sphere.center - foot
  square = dot(between, between)
  return square, foot, between, square < INSIDE * INSIDE


def each_edge(program: Program, prism: Prism) -> Iterator[tuple[Vector, Vector]]:
  """Loop over the nine edges: start and span."""
  edges = program.array(54)
  edges.fill([x for start, span in prism.edges for x in (*start, *span)])
  with program.loop(9) as i:
    values = edges.read(i * 6, 6)
    yield Vector(*values[:3]), Vector(*values[3:])


def closest_on_lines(start: Vector, span: Vector, center: Vector, half_axis: Vector) -> tuple[Vector, Vector]:
  """Return the point of an edge that is closest to a segment, and the vector from it to there."""
  separation = center - start
  e, f, b = dot(span, span), dot(half_axis, half_axis), dot(span, half_axis)
  c, g = dot(span, separation), dot(half_axis, separation)
  across = cross(span, half_axis)
  t = clip(dot(cross(separation, half_axis), across) / maximum(dot(across, across), 1e-20), 0.0, 1.0)
  s = clip((t * b - g) / maximum(f, 1e-20), -1.0, 1.0)
  t = clip((c + s * b) / e, 0.0, 1.0)
  s = clip((t * b - g) / maximum(f, 1e-20), -1.0, 1.0)
  foot = start + span * t
  return foot, center + half_axis * s - foot


def least_overlap(program: Program, prism: Prism, solid: Solid) -> tuple[Number, Vector, Vector]:
  """Return depth [m], normal and halfway point for the shortest way of a solid out of a prism."""
  best = Best(program)
  for normal, offset in prism.faces:
    depth = offset + solid.extent(normal) - dot(normal, solid.center)
    best.offer(depth, normal, solid.lowest(normal) + normal * (0.5 * depth))
  for axis in solid.half_axes:
    _offer_axis(program, best, prism, solid, axis)
  return best.result


def _offer_axis(program: Program, best: Best, prism: Prism, solid: Solid, axis: Vector) -> None:
  """Offer the directions across a capsule's axis and each edge."""
  for start, span in each_edge(program, prism):
    across = cross(axis, span)
    square, least = dot(across, across), SHARP * SHARP * dot(axis, axis) * dot(span, span)
    outward = where(dot(across, start - prism.center) < 0.0, -1.0, 1.0)
    normal = across * (outward / sqrt(maximum(square, least)))
    _, height = prism.highest(normal)
    height = height + (height - dot(normal, start))  # more where the edge is not the prism's furthest
    depth = height + solid.extent(normal) - dot(normal, solid.center)
    aside = cross(axis, normal)
    t = clip(
      dot(solid.lowest(normal) - start, aside) / where(square < least, 1.0, dot(span, aside)), 0.0, 1.0
    )
    best.offer(where(square < least, NEVER, depth), normal, start + span * t - normal * (0.5 * depth))
