"""The table of narrow phases: the function that finds the contacts of two types of shapes.

A narrow phase takes the program, two shapes in the order of their types, relative to one reference, and the
margin [m], the distance at which contact begins. It yields possible contacts, their normals from the first
shape to the second. It may yield inside loops and guarded blocks: a contact is used where it is yielded. At
its end it may yield the number of contacts that it lost for lack of room.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from physics.collision.box import capsule_box, sphere_box
from physics.collision.box_box import box_box
from physics.collision.convex import CONVEX, Forms, boxes_meet, convex, convex_faces
from physics.collision.cylinder import sphere_cylinder
from physics.collision.geometry import (
  BOX,
  CAPSULE,
  CYLINDER,
  ELLIPSOID,
  HFIELD,
  MESH,
  PLANE,
  SPHERE,
  ContactCandidate,
  Lost,
  Shape,
)
from physics.collision.hfield import (
  MOST,
  HeightField,
  hfield_capsule,
  hfield_convex,
  hfield_sphere,
  most_prisms,
)
from physics.collision.mesh import plane_mesh
from physics.collision.plane import plane_box, plane_capsule, plane_cylinder, plane_ellipsoid, plane_sphere
from physics.collision.segment import segments
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.trace import Integer, Number, Program, Truth


@dataclass(frozen=True)
class Narrow:
  """A narrow phase, the most contacts that it yields, and whether it is as cheap as a bounding test."""

  find: Callable[[Program, Shape, Shape, Number], Iterator[ContactCandidate | Lost]]
  most: int
  cheap: bool = False
  tables: bool = False  # it reads shapes from tables, except for height fields, so one loop serves all
  meet: Callable[[Shape, Shape, Number], Truth] | None = None  # a closer bounding test of a costly search

  def assets(self, program: Program, model: Model, geoms: Sequence[int]) -> Callable[[Integer], Any]:
    """Return a function that gives the asset of a pair's geom, by the pair's number in a family."""
    if self.tables and model.geom_type[geoms[0]] != HFIELD:
      return Forms(program, model, geoms).at
    same = asset(model, geoms[0])
    return lambda _: same


SEARCHED = (ELLIPSOID, CYLINDER, BOX, MESH)  # on height fields
NARROW: dict[tuple[int, int], Narrow] = {
  (PLANE, SPHERE): Narrow(plane_sphere, 1, cheap=True),
  (PLANE, CAPSULE): Narrow(plane_capsule, 2, cheap=True),
  (PLANE, ELLIPSOID): Narrow(plane_ellipsoid, 1),
  (PLANE, CYLINDER): Narrow(plane_cylinder, 4),
  (PLANE, BOX): Narrow(plane_box, 4),
  (PLANE, MESH): Narrow(plane_mesh, 4, tables=True),
  (HFIELD, SPHERE): Narrow(hfield_sphere, MOST[SPHERE]),
  (HFIELD, CAPSULE): Narrow(hfield_capsule, MOST[CAPSULE]),
  **{(HFIELD, kind): Narrow(hfield_convex, MOST[MESH], tables=True) for kind in SEARCHED},
  (SPHERE, SPHERE): Narrow(segments, 1),
  (SPHERE, CAPSULE): Narrow(segments, 1),
  (SPHERE, CYLINDER): Narrow(sphere_cylinder, 1),
  (SPHERE, BOX): Narrow(sphere_box, 1),
  (CAPSULE, CAPSULE): Narrow(segments, 2),
  (CAPSULE, BOX): Narrow(capsule_box, 2),
  (BOX, BOX): Narrow(box_box, 8),
}
# For any two convex shapes that the table lacks.
ONE_POINT = Narrow(convex, 1, tables=True, meet=boxes_meet)
FACES = Narrow(convex_faces, 4, tables=True, meet=boxes_meet)
ASSETS: dict[int, Callable[[Model, int], Any]] = {HFIELD: HeightField.of}


def can_collide(type1: int, type2: int) -> bool:
  """Return whether there is a narrow phase for two types of geoms, in their order."""
  return (type1, type2) in NARROW or {type1, type2} <= set(CONVEX)


def narrow_phase(model: Model, pair: ContactPair) -> Narrow:
  """Return the narrow phase of a pair; KeyError if there is none."""
  types = int(model.geom_type[pair.geom1]), int(model.geom_type[pair.geom2])
  if types[0] == HFIELD and types in NARROW:
    return replace(NARROW[types], most=most_prisms(model, pair.geom1, types[1]))
  if types in NARROW or not can_collide(*types):
    return NARROW[types]
  return ONE_POINT if SPHERE in types or ELLIPSOID in types or not model.multiccd else FACES


def is_searched(model: Model, pair: ContactPair) -> bool:
  """Return whether the contacts of a pair are searched, so that their last digits are open."""
  return narrow_phase(model, pair).find in (convex, convex_faces, hfield_convex)


def asset(model: Model, geom: int) -> Any:
  """Return the data of a geom's shape beyond its sizes, such as a mesh's hull; None for most shapes."""
  make = ASSETS.get(int(model.geom_type[geom]))
  return make(model, geom) if make else None
