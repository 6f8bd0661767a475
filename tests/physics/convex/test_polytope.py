"""Depths of overlaps, against the separating axis theorem and against what a translation does."""

from dataclasses import replace

import numpy as np
import pytest

from physics.algebra.spatial import Vector
from physics.convex.closest import closest
from physics.convex.core import BOX
from physics.convex.polytope import overlap
from tests.physics.convex.scene import random_poses, run

BOXES = [(0.1, 0.2, 0.3), (0.2, 0.1, 0.15)]


def measured(a, b):
  near = closest(a, b, 0.0, 50)
  found = overlap(a, b, near, 48, 1e-6)
  return [found.depth, *found.normal, *found.on_a]


def extent(rotation, size, normal):
  return (np.abs(np.einsum("jil,jl->il", rotation, normal)) * np.array(size)[:, None]).sum(0)


def depths(poses, normals):
  """Return by how much two boxes overlap along unit vectors [3, lane] from the first to the second."""
  positions, rotations = poses
  reach = sum(extent(rotation, size, normals) for rotation, size in zip(rotations, BOXES, strict=True))
  return reach - (normals * (positions[1] - positions[0])).sum(0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_boxes_overlap_as_the_separating_axis_theorem_says(dtype):
  poses = random_poses(400, 0.12)
  least = np.full(400, np.inf)
  axes = [poses[1][box][:, k] for box in (0, 1) for k in range(3)]
  axes += [np.cross(axes[i], axes[3 + j], axis=0) for i in range(3) for j in range(3)]
  for axis in axes:
    unit = axis / np.linalg.norm(axis, axis=0)
    for normal in (unit, -unit):
      least = np.minimum(least, depths(poses, normal))
  found = run(measured, (BOX, BOX), BOXES, poses, dtype)
  touching = least > 1e-4
  assert touching.sum() > 200
  np.testing.assert_allclose(found[0][touching], least[touching], atol=2e-6)
  np.testing.assert_allclose(depths(poses, found[1:4])[touching], least[touching], atol=2e-6)
  np.testing.assert_allclose(np.linalg.norm(found[1:4], axis=0)[touching], 1.0, atol=1e-5)


def test_a_polytope_needs_no_first_guess():
  """Without a tetrahedron and with a direction that points nowhere it finds the same depth."""
  poses = random_poses(100, 0.05)

  def lost(a, b):
    near = replace(closest(a, b, 0.0, 50), separation=Vector(0.0, 0.0, 1e-9), overlap=True, inside=False)
    found = overlap(a, b, near, 48, 1e-6)
    return [found.depth]

  (expected, *_), (found,) = (run(f, (BOX, BOX), BOXES, poses) for f in (measured, lost))
  np.testing.assert_allclose(found, expected, atol=2e-6)
