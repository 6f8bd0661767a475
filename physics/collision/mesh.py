"""Contacts of planes with convex meshes, whose hulls MuJoCo has compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from physics.algebra.spatial import Vector, dot
from physics.collision.geometry import ContactCandidate, Shape
from physics.collision.plane import Plane
from physics.model.model import Floats, Model
from physics.trace.trace import Integer, Number, Program, maximum, minimum, where

RING = 4  # contacts that a face can have
FARTHEST = -1e10  # below any coordinate [m]


@dataclass(frozen=True, eq=False)
class Hull:
  """The convex hull of a mesh about the geom's centre. A corner is a vertex in one of its faces."""

  vertices: Floats  # [vertex, 3] [m]
  first_corner: list[int]  # [vertex] the corners of a vertex follow each other
  corner_count: list[int]  # [vertex]
  normals: Floats  # [corner, 3] outward normal of the face
  rings: Floats  # [corner, RING, 3] vertices of the face from the corner on [m], then points far above

  @staticmethod
  def of(model: Model, geom: int) -> Hull:
    """Read the hull of a mesh geom."""
    faces = list(_faces(model, geom))
    used = sorted({vertex for ring, _ in faces for vertex in ring})
    mj = model.mj
    points = np.asarray(mj.mesh_vert[int(mj.mesh_vertadr[model.geom_dataid[geom]]) :], float)
    corners: list[list[tuple[Floats, Floats]]] = [[] for _ in used]
    for ring, normal in faces:
      for k, vertex in enumerate(ring):
        widest = _widest(points[[*ring[k:], *ring[:k]]])
        opposite = np.tile(-normal * np.ptp(points[used], axis=0).max(), (RING - len(widest), 1))
        padded = np.concatenate([widest, opposite])
        corners[used.index(vertex)].append((normal, padded))
    counts = [len(group) for group in corners]
    normals, rings = (
      np.array(x) for x in zip(*(corner for group in corners for corner in group), strict=True)
    )
    return Hull(points[used], np.cumsum([0, *counts[:-1]]).tolist(), counts, normals, rings)


def _faces(model: Model, geom: int) -> Iterator[tuple[list[int], Floats]]:
  """Yield the vertices and the normal of each face of a mesh's hull."""
  mj, mesh = model.mj, int(model.geom_dataid[geom])
  for face in range(int(mj.mesh_polyadr[mesh]), int(mj.mesh_polyadr[mesh] + mj.mesh_polynum[mesh])):
    start, size = int(mj.mesh_polyvertadr[face]), int(mj.mesh_polyvertnum[face])
    yield mj.mesh_polyvert[start : start + size].tolist(), np.asarray(mj.mesh_polynormal[face], float)


def _widest(ring: Floats) -> Floats:
  """Return up to four vertices [4, 3] of a convex polygon that, with the first, span a wide quadrilateral.

  As in MuJoCo, the last vertex advances while the area grows; after each advance the third does, then the
  second.
  """
  chosen = list(range(min(RING, len(ring))))

  def area(corners: Sequence[int]) -> float:
    a, b, c, d = ring[corners]
    return float(np.linalg.norm(np.cross(c - a, d - b)))

  def advance(k: int) -> bool:
    moved = [*chosen[:k], (chosen[k] + 1) % len(ring), *chosen[k + 1 :]]
    grows = area(moved) > area(chosen)
    if grows:
      chosen[:] = moved
    return grows

  if len(ring) > RING:
    while advance(3):
      for k in (2, 1):
        while advance(k):
          pass
  return ring[chosen]


def plane_mesh(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield up to four contacts of a face: of those at the lowest vertex, the one that faces the plane most.

  Vertices above the mesh's centre do not count.
  """
  hull, plane = two.asset, Plane.of(one, margin)
  center = plane.height(two.position)
  down = two.rotation.transposed @ -plane.normal
  lowest, depth = _farthest(program, hull, down)
  with program.when_any(center - depth < margin):
    corner = _facing(program, hull, lowest, down)
    points = [
      two.position
      + two.rotation @ Vector(*(program.table(hull.rings[:, k, axis].tolist(), corner) for axis in range(3)))
      for k in range(RING)
    ]
    yield from Plane.of(one, minimum(margin, center)).candidates(program, points)


def _farthest(program: Program, hull: Hull, direction: Vector) -> tuple[Number, Number]:
  """Return the vertex that is farthest in a direction, and how far."""
  best, distance = program.variable(0.0), program.variable(FARTHEST)
  with program.loop(len(hull.vertices)) as i:
    along = dot(direction, _row(program, hull.vertices, i))
    best[0] = where(along > distance[0], program.table(_counting(len(hull.vertices)), i), best[0])
    distance[0] = maximum(along, distance[0])
  return best[0], distance[0]


def _facing(program: Program, hull: Hull, vertex: Number, direction: Vector) -> Number:
  """Return the corner at a vertex whose face points most in a direction."""
  most = max(hull.corner_count)
  first, count = (program.table(list(map(float, x)), vertex) for x in (hull.first_corner, hull.corner_count))
  best, alignment = program.variable(0.0), program.variable(FARTHEST)
  with program.loop(most) as k:
    step = program.table(_counting(most), k)
    along = dot(direction, _row(program, hull.normals, first + step))
    better = (step < count) & (along > alignment[0])
    best[0] = where(better, first + step, best[0])
    alignment[0] = where(better, along, alignment[0])
  return best[0]


def _row(program: Program, table: Floats, index: Integer | Number) -> Vector:
  return Vector(*(program.table(column, index) for column in table.T.tolist()))


def _counting(count: int) -> list[float]:
  return [float(i) for i in range(count)]
