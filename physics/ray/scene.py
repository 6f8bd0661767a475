"""The scene that rays meet: the geoms of a model at an instant."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from physics.algebra.spatial import Vector
from physics.collision.family import Shapes, Side
from physics.collision.geometry import (
  BOX,
  CAPSULE,
  CYLINDER,
  ELLIPSOID,
  HFIELD,
  MESH,
  PLANE,
  SPHERE,
  Shape,
  geom_shape,
)
from physics.collision.hfield import HeightField
from physics.dynamics.kinematics import Poses
from physics.model.model import Floats, Model
from physics.ray.grid_traversal import ray_height_field
from physics.ray.ray import (
  NONE,
  ray_box,
  ray_capsule,
  ray_cylinder,
  ray_ellipsoid,
  ray_plane,
  ray_sphere,
  ray_triangle,
)
from physics.trace.trace import Integer, Number, Program, minimum, where

GROUPS = 6  # mjNGROUP: greater groups count as the last one


@dataclass(frozen=True, eq=False)
class Triangles:
  """The faces of a mesh, in the geom's frame."""

  corners: Floats  # [face, 9] three points [m]
  radius: float  # of a sphere about the origin that holds them all [m]

  @staticmethod
  def of(model: Model, geom: int) -> "Triangles":
    """Read the faces of a mesh geom."""
    mj, mesh = model.mj, int(model.geom_dataid[geom])
    first, vertex = int(mj.mesh_faceadr[mesh]), int(mj.mesh_vertadr[mesh])
    faces = mj.mesh_face[first : first + int(mj.mesh_facenum[mesh])]
    corners = np.asarray(mj.mesh_vert, float)[vertex + faces]
    return Triangles(corners.reshape(-1, 9), float(np.linalg.norm(corners, axis=2).max()))


def _mesh(program: Program, shape: Shape, origin: Vector, direction: Vector) -> Number:
  mesh: Triangles = shape.asset
  best = program.variable(NONE)
  with (
    program.when_any(ray_sphere(origin, direction, mesh.radius) < NONE),
    program.loop(len(mesh.corners)) as i,
  ):
    x = [program.table(column, i) for column in mesh.corners.T.tolist()]
    corners = (Vector(*x[k : k + 3]) for k in (0, 3, 6))
    best[0] = minimum(best[0], ray_triangle(origin, direction, corners))
  return best[0]


Meet = Callable[[Program, Shape, Vector, Vector], Number]
MEET: dict[int, Meet] = {
  PLANE: lambda _, shape, o, d: ray_plane(o, d, shape.size),
  HFIELD: lambda program, shape, o, d: ray_height_field(program, shape.asset, o, d),
  SPHERE: lambda _, shape, o, d: ray_sphere(o, d, shape.size[0]),
  CAPSULE: lambda _, shape, o, d: ray_capsule(o, d, *shape.size[:2]),
  ELLIPSOID: lambda _, shape, o, d: ray_ellipsoid(o, d, shape.size),
  CYLINDER: lambda _, shape, o, d: ray_cylinder(o, d, *shape.size[:2]),
  BOX: lambda _, shape, o, d: ray_box(o, d, shape.size),
  MESH: _mesh,
}
ASSETS: dict[int, Callable[[Model, int], Any]] = {HFIELD: HeightField.of, MESH: Triangles.of}


def visible_geoms(
  model: Model, groups: Sequence[int] | None = None, static: bool = True, exclude: int = -1
) -> list[int]:
  """Return the geoms that rays meet, by `mj_ray`'s rules: those that are not wholly transparent.

  `groups` chooses geom groups (None: all), `static` includes geoms that never move, and `exclude` is a body
  to leave out.
  """
  mj, chosen = model.mj, []
  for geom in range(model.ngeom):
    body, material = int(model.geom_bodyid[geom]), int(mj.geom_matid[geom])
    alpha = mj.geom_rgba[geom, 3] if material < 0 else mj.mat_rgba[material, 3]
    moves = model.body_weldid[body] > 0
    group = min(max(int(mj.geom_group[geom]), 0), GROUPS - 1)
    if body != exclude and alpha > 0 and (static or moves) and (groups is None or group in groups):
      chosen.append(geom)
  return chosen


class Scene:
  """The geoms that rays can meet, relative to a reference point in the world; a type shares one loop."""

  def __init__(
    self, program: Program, model: Model, p: Poses, geoms: Sequence[int], reference: Vector
  ) -> None:
    self.program = program
    relative = {g: geom_shape(model, p, g, reference - p.origin[model.geom_bodyid[g]]) for g in geoms}
    shapes = Shapes(program, relative, list(relative.values()))
    self.kinds: list[tuple[Meet, Any, Side, int]] = []

    def kind(geom: int) -> tuple[int, int]:
      return int(model.geom_type[geom]), int(model.geom_dataid[geom])

    for (type_, _), group in groupby(sorted(geoms, key=kind), key=kind):
      members = list(group)
      asset = ASSETS[type_](model, members[0]) if type_ in ASSETS else None
      self.kinds.append((MEET[type_], asset, shapes.side(members), len(members)))

  def distance(self, origin: Vector, direction: Vector) -> Number:
    """Return the distance to the nearest geom in lengths of the direction, -1 if there is none.

    The origin is relative to the reference point, the direction in world axes.
    """
    best = self.program.variable(NONE)
    for meet, asset, side, count in self.kinds:
      for i in self._each(count):
        geom = side.at(i)
        inverse = geom.rotation.transposed
        shape = Shape(geom.position, geom.rotation, geom.size, asset)
        found = meet(self.program, shape, inverse @ (origin - geom.position), inverse @ direction)
        best[0] = minimum(best[0], found)
    return where(best[0] < NONE, best[0], -1.0)

  def _each(self, count: int) -> Iterator[Integer]:
    if count == 1:
      yield 0
    else:
      with self.program.loop(count) as i:
        yield i
