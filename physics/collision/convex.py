"""Contacts of any two convex shapes, for pairs that no formula covers.

Distance and normal follow from the closest points, or from the direction of least penetration. As in MuJoCo,
where a face meets a face or an edge there are up to four contacts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from physics.algebra.spatial import Vector, dot
from physics.collision.geometry import ContactCandidate, Shape, geom_box
from physics.convex.closest import closest
from physics.convex.core import MESH, SPHERE, Convex, Core
from physics.convex.faces import CONTACTS, face_contacts
from physics.convex.features import Part
from physics.convex.hull import CUBE, Hulls
from physics.convex.polytope import overlap
from physics.model.model import Model
from physics.trace.column import Column
from physics.trace.trace import Integer, Number, Program, Truth, absolute, maximum, negate, sqrt, where

CONVEX = range(SPHERE, MESH + 1)  # the types of geoms that this serves
LEAST = 1e-12  # the least distance [m] of cores that has a direction


@dataclass(frozen=True)
class Form:
  """A shape's kind, bounds and hull, read from tables by the number of a pair."""

  kind: Integer  # type of the geom
  kinds: tuple[int, ...]  # all types that it can be
  hull: Integer | Number  # number of the hull, one for the group or one for each lane
  hulls: Hulls
  center: Vector  # of a box about the shape [m], along its axes
  half: Vector  # half the sides of the box [m]
  iterations: int  # the most steps of a search
  tolerance: float  # precision of a depth [m]


class Forms:
  """The forms of geoms, such as one side of a family's pairs."""

  def __init__(
    self, program: Program, model: Model, geoms: Sequence[int], hulls: Hulls | None = None
  ) -> None:
    self.program, self.option = program, model.mj.opt
    self.hulls = hulls or program.once(("hulls",), lambda: hulls_of(model, _colliding(model)))
    self.kinds = [int(model.geom_type[geom]) for geom in geoms]
    meshes = [int(model.geom_dataid[geom]) if model.geom_type[geom] == MESH else CUBE for geom in geoms]
    self.numbers = [self.hulls.meshes.index(mesh) for mesh in meshes]
    boxes = [geom_box(model, geom) for geom in geoms]
    self.boxes = [Column(program, column) for column in zip(*((*c, *h) for c, h in boxes), strict=True)]

  def at(self, place: Integer | Number) -> Form:
    """Return the form of the geom in a place; lanes may have their own if kinds and hulls are equal."""
    kind, hull = (
      self.program.table(numbers, place) if len(set(numbers)) > 1 else numbers[0]
      for numbers in (self.kinds, self.numbers)
    )
    settings = int(self.option.ccd_iterations), float(self.option.ccd_tolerance)
    box = [column[place] for column in self.boxes]
    center, half = Vector(*box[:3]), Vector(*box[3:])
    return Form(kind, tuple(sorted(set(self.kinds))), hull, self.hulls, center, half, *settings)


def hulls_of(model: Model, geoms: Iterable[int]) -> Hulls:
  """Return the hulls of the meshes among geoms."""
  return Hulls.of(model.mj, [int(model.geom_dataid[geom]) for geom in geoms if model.geom_type[geom] == MESH])


def _colliding(model: Model) -> set[int]:
  return {geom for pair in model.pairs for geom in (pair.geom1, pair.geom2)}


@dataclass(frozen=True)
class Touch:
  """Where two shapes are closest, or how they overlap."""

  distance: Number  # [m] negative: depth
  normal: Vector  # from the first to the second
  point: Vector  # [m] halfway between the surfaces
  near: Truth  # whether the distance is less than the margin, so that the rest has a meaning
  vertices_a: list[Number]  # [3] of the part of the first shape that touches; equal ones count once
  vertices_b: list[Number]


def convex(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of two shapes."""
  near = boxes_meet(one, two, margin)
  with program.when_any(near):
    touch = touch_of(core_of(program, one), core_of(program, two), margin, one.asset, near)
    yield ContactCandidate(touch.near, partial(_known, touch.distance, touch.normal, touch.point))


def convex_faces(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contacts of two shapes: up to four where a face meets a face or an edge, otherwise one."""
  a, b = core_of(program, one), core_of(program, two)
  near = boxes_meet(one, two, margin)
  with program.when_any(near):
    touch = touch_of(a, b, margin, one.asset, near)
    yield from _contacts(a, b, touch, margin)


def _contacts(a: Core, b: Core, touch: Touch, margin: Number) -> Iterator[ContactCandidate]:
  program = a.program
  with program.when_any(touch.near):
    part_a = Part(a, touch.vertices_a, touch.normal, margin)
    part_b = Part(b, touch.vertices_b, -touch.normal, margin)
    meetings = face_contacts(part_a, part_b, touch.near)
    alone = touch.near
    for meeting in meetings:
      alone = alone & negate(meeting.active)
    rows = program.array(8 * CONTACTS)
    for k, meeting in enumerate(meetings):
      exists = meeting.active | alone if k == 0 else meeting.active
      row = (meeting.distance, *meeting.normal, *meeting.point)
      # Lanes without the contact count with weight zero, so their numbers must be finite: the touch's are.
      single = (touch.distance, *touch.normal, *touch.point)
      values = [where(meeting.active, value, lone) for value, lone in zip(row, single, strict=True)]
      for j, value in enumerate((where(exists, 1.0, 0.0), *values)):
        rows[8 * k + j] = value
    with program.loop(CONTACTS) as place:
      active, distance, *rest = rows.read(place * 8, 8)
      known = partial(_known, distance, Vector(*rest[:3]), Vector(*rest[3:]))
      below = distance < margin  # MuJoCo finds corners at the margin too, and drops them
      yield ContactCandidate((active > 0.5) & below, known)


def _known(distance: Number, normal: Vector, point: Vector) -> tuple[Number, Vector, Vector]:
  return distance, normal, point


def core_of(program: Program, shape: Shape) -> Core:
  """Return the core of a shape whose asset is its form."""
  form: Form = shape.asset
  return Core(
    program, shape.position, shape.rotation, shape.size, form.kind, form.kinds, form.hull, form.hulls
  )


def boxes_meet(one: Shape, two: Shape, margin: Number) -> Truth:
  """Return whether two bounding boxes are within a margin [m] along the normals of all their faces."""
  boxes = [(shape, shape.position + shape.rotation @ shape.asset.center) for shape in (one, two)]
  meet: Truth = True
  for (shape, center), (other, other_center) in (boxes, boxes[::-1]):
    turned = shape.rotation.transposed.times(other.rotation)
    between = shape.rotation.transposed @ (other_center - center)
    for row, gap, half in zip(turned, between, shape.asset.half, strict=True):
      reach = half + dot([absolute(x) for x in row], other.asset.half) + margin
      meet = meet & (absolute(gap) <= reach)
  return meet


def touch_of(a: Convex, b: Convex, margin: Number, form: Form, lanes: Truth) -> Touch:
  """Return where two shapes touch in some lanes, if their distance is less than the margin [m]."""
  program, radii = a.program, a.radius + b.radius
  near = closest(a, b, radii + margin, form.iterations, lanes)
  length = sqrt(maximum(dot(near.separation, near.separation), LEAST * LEAST))
  memory = program.array(13)  # distance of the cores, normal, point of a, three vertices of each
  vertices = (*near.vertices_a, *near.vertices_b)
  memory.fill([length, *(near.separation * (-1.0 / length)), *near.on_a, *vertices])
  with program.when_any(near.overlap):
    found = overlap(a, b, near, form.iterations, form.tolerance)
    values = (-found.depth, *found.normal, *found.on_a, *found.vertices_a, *found.vertices_b)
    memory.fill([where(near.overlap, new, old) for new, old in zip(values, memory.read(), strict=True)])
  distance, *rest = memory.read()
  normal, on_a = Vector(*rest[:3]), Vector(*rest[3:6])
  point = on_a + normal * (0.5 * (distance + a.radius - b.radius))
  touches = ~near.beyond & (distance - radii < margin)
  return Touch(distance - radii, normal, point, touches, rest[6:9], rest[9:])
