"""Tables of hulls: the cube, the caps and meshes."""

import mujoco
import numpy as np

from physics.convex.hull import CUBE, DRUM, Hulls
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
  return Hulls.of(model, range(len(clouds))), model


def rings(hulls, hull):
  """Yield the vertices and the normal of each face of a hull."""
  start, end = hulls.vertex_start[hull : hull + 2]
  first, last = (hulls.corner_face[hulls.corner_start[at] :] for at in (start, end))
  stop = min(last) if last else len(hulls.normals)
  for face in range(min(first), stop):
    ring = hulls.ring[hulls.ring_start[face] : hulls.ring_start[face + 1]]
    yield np.array(hulls.vertices)[ring], np.array(hulls.normals[face])


def test_faces_are_clockwise_from_outside():
  hulls, _ = hulls_of(STONE, STONE[:10] * 2)
  assert hulls.meshes == [CUBE, DRUM, 0, 1]
  for hull in range(4):
    for points, normal in rings(hulls, hull):
      offsets = points @ normal
      np.testing.assert_allclose(offsets, offsets[0], atol=2e-3)  # as flat as MuJoCo's merged faces
      turn = np.cross(points[1] - points[0], points[2] - points[1])
      assert turn @ normal < 0


def test_no_vertex_is_beyond_a_face():
  hulls, _ = hulls_of(STONE)
  for hull in (0, 2):
    points = np.array(hulls.vertices)[hulls.vertex_start[hull] : hulls.vertex_start[hull + 1]]
    for ring, normal in rings(hulls, hull):
      assert (points @ normal).max() < ring[0] @ normal + 2e-3


def test_every_corner_has_an_edge_of_its_face():
  hulls, _ = hulls_of(STONE)
  for vertex in range(len(hulls.vertices)):
    corners = range(hulls.corner_start[vertex], hulls.corner_start[vertex + 1])
    ends = [hulls.corner_end[corner] for corner in corners]
    assert len(set(ends)) == len(ends)
    assert all(
      np.sum(np.array(hulls.vertices[vertex]) != hulls.vertices[end]) == 1 for end in ends if end < 8
    )


def test_the_number_of_a_cubes_vertex_holds_its_signs():
  hulls, program = Hulls.of(None, []), Program()
  for vertex in range(8):
    signs = [1.0 if vertex >> bit & 1 else -1.0 for bit in range(3)]
    assert list(hulls.vertex(program, vertex)) == signs
