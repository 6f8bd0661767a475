"""Tables of hulls: the cube, the caps and meshes."""

import mujoco
import numpy as np

from physics.convex.hull import CUBE, DRUM, Hulls
from physics.trace.farthest import CLUSTER
from physics.trace.trace import Program

STONE = np.random.default_rng(0).normal(size=(30, 3))


def hulls_of(*clouds):
  """Return the hulls of meshes made of points."""
  meshes = "".join(
    f'<mesh name="m{i}" vertex="{" ".join(map(str, c.ravel()))}"/>' for i, c in enumerate(clouds)
  )
  geoms = "".join(f'<geom type="mesh" mesh="m{i}"/>' for i in range(len(clouds)))
  model = mujoco.MjModel.from_xml_string(
    f"<mujoco><asset>{meshes}</asset><worldbody>{geoms}</worldbody></mujoco>"
  )
  return Hulls.of(model, range(len(clouds)))


def points_of(hulls, hull):
  """Return the vertices of a hull [vertex, 3]."""
  return np.array(hulls.vertices).T[hulls.vertex_start[hull] : hulls.vertex_start[hull + 1]]


def rings(hulls, hull):
  """Yield the vertices and the normal of each face of a hull."""
  first, last = (int(hulls.corner_start[vertex]) for vertex in hulls.vertex_start[hull : hull + 2])
  for face in sorted({int(face) for face in hulls.corner_face[first:last]}):
    ring = [
      int(vertex) for vertex in hulls.ring[int(hulls.ring_start[face]) : int(hulls.ring_start[face + 1])]
    ]
    yield np.array(hulls.vertices).T[ring], np.array(hulls.normals)[:, face]


def test_faces_are_clockwise_from_outside():
  hulls = hulls_of(STONE, STONE[:10] * 2)
  assert hulls.meshes == (CUBE, DRUM, 0, 1)
  for hull in range(4):
    for points, normal in rings(hulls, hull):
      offsets = points @ normal
      np.testing.assert_allclose(offsets, offsets[0], atol=2e-3)  # as flat as MuJoCo's merged faces
      turn = np.cross(points[1] - points[0], points[2] - points[1])
      assert turn @ normal < 0


def test_no_vertex_is_beyond_a_face():
  hulls = hulls_of(STONE)
  for hull in (0, 2):
    points = points_of(hulls, hull)
    for ring, normal in rings(hulls, hull):
      assert (points @ normal).max() < ring[0] @ normal + 2e-3


def test_every_corner_has_an_edge_of_its_face():
  hulls = hulls_of(STONE)
  vertices = np.array(hulls.vertices).T
  for vertex in range(len(vertices)):
    corners = range(int(hulls.corner_start[vertex]), int(hulls.corner_start[vertex + 1]))
    ends = [int(hulls.corner_end[corner]) for corner in corners]
    assert len(set(ends)) == len(ends)
    assert all(np.sum(vertices[vertex] != vertices[end]) == 1 for end in ends if end < 8)


def test_the_number_of_a_cubes_vertex_holds_its_signs():
  hulls, program = Hulls.of(None, []), Program()
  for vertex in range(8):
    signs = [1.0 if vertex >> bit & 1 else -1.0 for bit in range(3)]
    assert list(hulls.vertex(program, vertex)) == signs


def test_a_hull_has_the_outer_vertices_alone_in_clusters_of_neighbours():
  cloud = np.random.default_rng(1).normal(size=(500, 3))
  cloud[:300] /= np.linalg.norm(cloud[:300], axis=1)[:, None] / 3
  hulls = hulls_of(cloud)
  points, first = points_of(hulls, 2), hulls.vertex_start[2]
  assert 200 < len(points) < 320
  assert len(np.unique(points, axis=0)) == len(points)
  clusters, seen = hulls.clusters, set()
  for cluster in range(clusters.starts[2], clusters.starts[3]):
    places = slice(CLUSTER * cluster, CLUSTER * (cluster + 1))
    numbers = [int(number) for number in clusters.numbers[places]]
    inside = np.array([column[places] for column in clusters.vertices]).T
    np.testing.assert_array_equal(inside, points[np.array(numbers) - first])
    *center, radius = (column[cluster] for column in clusters.spheres)
    assert np.linalg.norm(inside - center, axis=1).max() <= radius < 3.0
    assert not seen & set(numbers)
    seen |= set(numbers)
  assert seen == set(range(first, first + len(points)))
