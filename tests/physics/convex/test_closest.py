"""What the search for closest points tells beside distances; test_distance.py compares those with MuJoCo."""

import numpy as np

from physics.convex.closest import closest
from physics.convex.core import BOX, CAPSULE, ELLIPSOID
from physics.trace.trace import where
from tests.physics.convex.scene import random_poses, run

REACH = 3.0


def measured(reach=REACH):
  def function(a, b):
    found = closest(a, b, reach, 50)
    flags = [where(mask, 1.0, 0.0) for mask in (found.overlap, found.beyond)]
    return [*found.separation, *found.on_a, *flags, *found.vertices_a, *found.vertices_b]

  return function


def test_what_is_beyond_reach_ends_early():
  poses = random_poses(300, 0.6)
  sizes = [(0.1, 0.2, 0.05), (0.2, 0.1, 0.15)]
  near, all_of_them = (run(measured(reach), (ELLIPSOID, BOX), sizes, poses) for reach in (0.1, REACH))
  distance = np.linalg.norm(all_of_them[:3], axis=0)
  np.testing.assert_array_equal(near[7] == 1, (distance > 0.1) & (all_of_them[6] == 0))


def test_vertices_tell_the_part_that_is_closest():
  positions, rotations = random_poses(1, 1.0)
  positions[:, :, 0] = [[0.0, 0.0, 0.0], [0.05, 0.06, 1.0]]
  rotations[:, :, :, 0] = np.eye(3)
  sizes = [(0.2, 0.2, 0.2), (0.1, 0.3, 0.0)]
  found = run(measured(), (BOX, CAPSULE), sizes, (positions, rotations))[:, 0]
  assert {int(vertex) & 4 for vertex in found[8:11]} == {4}  # of the upper face
  assert set(found[11:]) == {0.0}  # the capsule's lower end
  np.testing.assert_allclose(found[:3], [0, 0, -0.5], atol=1e-9)
