"""Tables of convex hulls: vertices, and the corners where a vertex and a face meet.

All hulls of a model lie in the same tables, one after the other, so code that reads them serves every mesh.
The first two are a cube with half sides of 1, which a box stretches by its sizes, and the caps of a cylinder,
which count as polygons of sixteen sides where they meet other faces, as in MuJoCo.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate, product
from typing import Any

import numpy as np

from physics.algebra.spatial import Vector
from physics.model.model import Floats, Ints
from physics.trace.farthest import CLUSTER, Clusters
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


Face = tuple[list[int], Floats]  # vertices around it, and the outward normal
Columns = tuple[tuple[float, ...], ...]  # of a table of vectors: all x, all y, all z


@dataclass(frozen=True, eq=False)
class Hulls:
  """The hulls of meshes in tables; every index counts from the first hull's beginning.

  The vertices of a hull come in clusters of neighbours. A search for the farthest one skips most clusters.
  """

  meshes: tuple[int, ...]  # [hull] number of the mesh, or CUBE or DRUM
  vertices: Columns  # [vertex] [m]
  vertex_start: tuple[int, ...]  # [hull + 1]
  clusters: Clusters  # the vertices once more
  corner_start: tuple[float, ...]  # [vertex + 1]
  corner_face: tuple[float, ...]  # [corner]
  corner_end: tuple[float, ...]  # [corner] the other end of one of the vertex's edges
  normals: Columns  # [face] outward
  ring_start: tuple[float, ...]  # [face + 1]
  ring: tuple[float, ...]  # vertices of the faces, clockwise from outside

  @staticmethod
  def of(mj: Any, meshes: Sequence[int]) -> "Hulls":
    """Return the hulls of the cube, the caps and some meshes of a mujoco.MjModel."""
    builder = _Builder()
    builder.add(CUBE, *_cube())
    builder.add(DRUM, *_drum())
    for mesh in sorted(set(meshes) - {CUBE, DRUM}):
      builder.add(mesh, *_mesh(mj, mesh))
    return builder.hulls()

  @property
  def numbers(self) -> tuple[float, ...]:
    """The numbers of the vertices."""
    return _counting(len(self.vertices[0]))

  def count(self, hull: int) -> int:
    """Return the number of vertices of a hull."""
    return self.vertex_start[hull + 1] - self.vertex_start[hull]

  @property
  def first_cap(self) -> float:
    """The face that is the lower cap; the upper one follows."""
    return self.corner_face[int(self.corner_start[self.vertex_start[self.meshes.index(DRUM)]])]

  @property
  def most_corners(self) -> int:
    """The most corners that a vertex has."""
    return int(np.diff(self.corner_start).max())

  @property
  def most_sides(self) -> int:
    """The most sides that a face has."""
    return int(np.diff(self.ring_start).max())

  def vertex(self, program: Program, index: Integer | Number) -> Vector:
    """Return a vertex [m] by its index, the same for all lanes or each lane's own."""
    return Vector(*(program.table(column, index) for column in self.vertices))

  def normal(self, program: Program, face: Number) -> Vector:
    """Return each lane's normal of a face."""
    return Vector(*(program.table(column, face) for column in self.normals))


class _Builder:
  """Lists that grow with each hull."""

  def __init__(self) -> None:
    self.meshes: list[int] = []
    self.vertices: list[Sequence[float]] = []
    self.vertex_start = [0]
    self.clustered: list[Sequence[float]] = []  # vertices in clusters, and the number of each
    self.spheres: list[Sequence[float]] = []  # about clusters
    self.cluster_start = [0]
    self.corner_start, self.ring_start = [0.0], [0.0]
    self.corner_face: list[float] = []
    self.corner_end: list[float] = []
    self.normals: list[Sequence[float]] = []
    self.ring: list[float] = []

  def add(self, mesh: int, points: Floats, faces: Sequence[Face]) -> None:
    """Append a hull; neighbours among the vertices of a mesh come to lie side by side."""
    order, sizes = ([*range(len(points))], []) if mesh < 0 else _clustered(points)
    points, place = points[order], {vertex: i for i, vertex in enumerate(order)}
    base, first_face = len(self.vertices), len(self.normals)
    self.meshes.append(mesh)
    self.vertices += points.tolist()
    self.vertex_start.append(len(self.vertices))
    for end, size in zip(accumulate(sizes), sizes, strict=True):
      self._add_cluster(points, range(end - size, end), base)
    self.cluster_start.append(len(self.spheres))
    corners: list[list[tuple[int, int]]] = [[] for _ in points]
    for number, (face, normal) in enumerate(faces):
      ring = [place[vertex] for vertex in face]
      for k, vertex in enumerate(ring):
        end = vertex ^ 1 << len(corners[vertex]) if mesh == CUBE else ring[(k + 1) % len(ring)]
        corners[vertex].append((first_face + number, base + end))
      self.ring += [float(base + vertex) for vertex in ring]
      self.ring_start.append(float(len(self.ring)))
      self.normals.append(normal.tolist())
    for group in corners:
      self.corner_face += [float(face) for face, _ in group]
      self.corner_end += [float(end) for _, end in group]
      self.corner_start.append(float(len(self.corner_face)))

  def _add_cluster(self, points: Floats, places: range, base: int) -> None:
    """Append a cluster of a hull with vertices from `base` on."""
    self.clustered += [(*points[i], base + i) for i in (*places, *[places[-1]] * (CLUSTER - len(places)))]
    cluster = points[places]
    center = 0.5 * (cluster.min(axis=0) + cluster.max(axis=0))
    radius = np.linalg.norm(cluster - center, axis=1).max()
    self.spheres.append([*center, radius * (1.0 + 1e-6)])

  def hulls(self) -> Hulls:
    """Return the tables."""
    *vertices, numbers = _columns(self.clustered, 4)
    spheres = _columns([*self.spheres, *[[0.0] * 4] * CLUSTER], 4)
    clusters = Clusters(tuple(vertices), numbers, tuple(self.cluster_start), spheres)
    names = [field.name for field in fields(Hulls) if field.name != "clusters"]
    tables: dict[str, Any] = {name: tuple(getattr(self, name)) for name in names}
    columns = {name: _columns(tables[name], 3) for name in ("vertices", "normals")}
    return Hulls(**tables | columns, clusters=clusters)


def _columns(rows: Sequence[Sequence[float]], count: int) -> Columns:
  """Return the columns of a table; it may have no rows."""
  return tuple(tuple(float(row[k]) for row in rows) for k in range(count))


def _clustered(points: Floats) -> tuple[list[int], list[int]]:
  """Return an order of points in which neighbours follow each other, and the sizes of the clusters."""

  def split(indices: Ints) -> list[Ints]:
    if len(indices) <= CLUSTER:
      return [indices]
    axis = np.ptp(points[indices], axis=0).argmax()
    halves = np.array_split(indices[np.argsort(points[indices, axis], kind="stable")], 2)
    return [part for half in halves for part in split(half)]

  parts = split(np.arange(len(points)))
  return np.concatenate(parts).tolist(), list(map(len, parts))


@cache
def _counting(count: int) -> tuple[float, ...]:
  """Return 0.0, 1.0, ...: the same object each time, which a program knows at once."""
  return tuple(map(float, range(count)))


def _cube() -> tuple[Floats, list[Face]]:
  corners = np.array(
    [(x, y, z) for z, y, x in product((-1.0, 1.0), repeat=3)]
  )  # bit k: the sign along axis k
  faces = []
  for axis, sign in product(range(3), (-1.0, 1.0)):
    normal = sign * np.eye(3)[axis]
    around = _CUBE_RINGS[axis, sign]
    faces.append(([int((np.array(corner) > 0) @ (1, 2, 4)) for corner in around], normal))
  return corners, faces


def _drum() -> tuple[Floats, list[Face]]:
  angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
  rim = np.stack([np.cos(angles), np.sin(angles), np.zeros(SIDES)], axis=1)
  up = np.array([0.0, 0.0, 1.0])
  upper = list(range(2 * SIDES - 1, SIDES - 1, -1))
  return np.concatenate([rim - up, rim + up]), [(list(range(SIDES)), -up), (upper, up)]


def _mesh(mj: Any, mesh: int) -> tuple[Floats, list[Face]]:
  """Return the vertices of a mesh's hull, and ring and normal of each face, as MuJoCo compiled them."""
  faces, start = list(mesh_faces(mj, mesh)), int(mj.mesh_vertadr[mesh])
  used = sorted({vertex for ring, _ in faces for vertex in ring})
  used = used or list(range(int(mj.mesh_vertnum[mesh])))  # a mesh that never collides has no faces
  order = {vertex: i for i, vertex in enumerate(used)}
  points = np.asarray(mj.mesh_vert[start:], float)[used]
  return points, [([order[vertex] for vertex in reversed(ring)], normal) for ring, normal in faces]


def mesh_faces(mj: Any, mesh: int) -> Iterator[Face]:
  """Yield the vertices and the normal of each face of a mesh's hull."""
  for face in range(int(mj.mesh_polyadr[mesh]), int(mj.mesh_polyadr[mesh] + mj.mesh_polynum[mesh])):
    start, size = int(mj.mesh_polyvertadr[face]), int(mj.mesh_polyvertnum[face])
    yield mj.mesh_polyvert[start : start + size].tolist(), np.asarray(mj.mesh_polynormal[face], float)
