"""Tables of convex hulls: vertices, and the corners where a vertex and a face meet.

All hulls of a model lie in the same tables, one after the other, so code that reads them serves every mesh.
The first two are a cube with half sides of 1, which a box stretches by its sizes, and the caps of a cylinder,
which count as polygons of sixteen sides where they meet other faces, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from physics.algebra.spatial import Vector
from physics.model.model import Floats
from physics.trace.trace import Integer, Number, Program

CUBE, DRUM = -1, -2  # the cube and the caps among the numbers of meshes
SIDES = 16  # of a cap
_CUBE_RINGS = {  # signs of the corners of a face, by its axis and side, in MuJoCo's order
  (0, 1.0): ((1, 1, 1), (1, 1, -1), (1, -1, -1), (1, -1, 1)),
  (0, -1.0): ((-1, 1, -1), (-1, 1, 1), (-1, -1, 1), (-1, -1, -1)),
  (1, 1.0): ((-1, 1, -1), (1, 1, -1), (1, 1, 1), (-1, 1, 1)),
  (1, -1.0): ((-1, -1, 1), (1, -1, 1), (1, -1, -1), (-1, -1, -1)),
  (2, 1.0): ((-1, 1, 1), (1, 1, 1), (1, -1, 1), (-1, -1, 1)),
  (2, -1.0): ((1, 1, -1), (-1, 1, -1), (-1, -1, -1), (1, -1, -1)),
}


@dataclass
class Hulls:
  """The hulls of meshes, by number, in tables that grow with each `add`.

  Every index into the tables counts from the first hull's beginning.
  """

  mj: Any  # mujoco.MjModel
  meshes: list[int] = field(default_factory=list)  # the meshes that have been added, or CUBE
  vertices: list[Sequence[float]] = field(default_factory=list)  # [vertex, 3] [m]
  vertex_start: list[int] = field(default_factory=lambda: [0])  # [hull + 1]
  corner_start: list[int] = field(
    default_factory=lambda: [0]
  )  # [vertex + 1] a vertex's corners are neighbours
  corner_face: list[int] = field(default_factory=list)  # [corner]
  corner_end: list[int] = field(default_factory=list)  # [corner] the other end of one of the vertex's edges
  normals: list[Sequence[float]] = field(default_factory=list)  # [face, 3] outward
  ring_start: list[int] = field(default_factory=lambda: [0])  # [face + 1]
  ring: list[int] = field(default_factory=list)  # vertices of the faces, clockwise from outside

  @staticmethod
  def of(mj: Any, meshes: Sequence[int]) -> Hulls:
    """Return the hulls of the cube, the caps and some meshes."""
    hulls = Hulls(mj)
    for mesh in (CUBE, DRUM, *sorted(set(meshes) - {CUBE, DRUM})):
      hulls._add(mesh)
    return hulls

  def _add(self, mesh: int) -> None:
    points, faces = {CUBE: _cube, DRUM: _drum}.get(mesh, lambda: _mesh(self.mj, mesh))()
    base, first_face = len(self.vertices), len(self.normals)
    self.meshes.append(mesh)
    self.vertices += points.tolist()
    self.vertex_start.append(len(self.vertices))
    corners: list[list[tuple[int, int]]] = [[] for _ in points]
    for number, (ring, normal) in enumerate(faces):
      for k, vertex in enumerate(ring):
        end = vertex ^ 1 << len(corners[vertex]) if mesh == CUBE else ring[(k + 1) % len(ring)]
        corners[vertex].append((first_face + number, base + end))
      self.ring += [base + vertex for vertex in ring]
      self.ring_start.append(len(self.ring))
      self.normals.append(normal.tolist())
    for group in corners:
      self.corner_face += [face for face, _ in group]
      self.corner_end += [end for _, end in group]
      self.corner_start.append(len(self.corner_face))

  def first_face(self, hull: int) -> int:
    """Return the number of a hull's first face."""
    return self.corner_face[self.corner_start[self.vertex_start[hull]]]

  def most_corners(self) -> int:
    """Return the most corners that a vertex has."""
    return int(np.diff(self.corner_start).max())

  def most_sides(self) -> int:
    """Return the most sides that a face has."""
    return int(np.diff(self.ring_start).max())

  def vertex(self, program: Program, index: Integer | Number) -> Vector:
    """Return a vertex [m] by its index, the same for all lanes or each lane's own."""
    return _row(program, self.vertices, index)

  def normal(self, program: Program, face: Number) -> Vector:
    """Return each lane's normal of a face."""
    return _row(program, self.normals, face)


def _row(program: Program, table: list[Sequence[float]], index: Integer | Number) -> Vector:
  return Vector(*(program.table([float(row[axis]) for row in table], index) for axis in range(3)))


def _cube() -> tuple[Floats, list[tuple[list[int], Floats]]]:
  corners = np.array(
    [(x, y, z) for z, y, x in product((-1.0, 1.0), repeat=3)]
  )  # bit k: the sign along axis k
  faces = []
  for axis, sign in product(range(3), (-1.0, 1.0)):
    normal = sign * np.eye(3)[axis]
    around = _CUBE_RINGS[axis, sign]
    faces.append(([int((np.array(corner) > 0) @ (1, 2, 4)) for corner in around], normal))
  return corners, faces


def _drum() -> tuple[Floats, list[tuple[list[int], Floats]]]:
  angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
  rim = np.stack([np.cos(angles), np.sin(angles), np.zeros(SIDES)], axis=1)
  up = np.array([0.0, 0.0, 1.0])
  upper = list(range(2 * SIDES - 1, SIDES - 1, -1))
  return np.concatenate([rim - up, rim + up]), [(list(range(SIDES)), -up), (upper, up)]


def _mesh(mj: Any, mesh: int) -> tuple[Floats, list[tuple[list[int], Floats]]]:
  """Return the vertices of a mesh's hull, and ring and normal of each face, as MuJoCo compiled them."""
  faces, start = list(mesh_faces(mj, mesh)), int(mj.mesh_vertadr[mesh])
  used = sorted({vertex for ring, _ in faces for vertex in ring})
  used = used or list(range(int(mj.mesh_vertnum[mesh])))  # a mesh that never collides has no faces
  order = {vertex: i for i, vertex in enumerate(used)}
  points = np.asarray(mj.mesh_vert[start:], float)[used]
  return points, [([order[vertex] for vertex in reversed(ring)], normal) for ring, normal in faces]


def mesh_faces(mj: Any, mesh: int) -> Iterator[tuple[list[int], Floats]]:
  """Yield the vertices and the normal of each face of a mesh's hull."""
  for face in range(int(mj.mesh_polyadr[mesh]), int(mj.mesh_polyadr[mesh] + mj.mesh_polynum[mesh])):
    start, size = int(mj.mesh_polyvertadr[face]), int(mj.mesh_polyvertnum[face])
    yield mj.mesh_polyvert[start : start + size].tolist(), np.asarray(mj.mesh_polynormal[face], float)
