"""Triangles and the trees about them."""

import mujoco
import numpy as np
import pytest

import physics
from physics.camera.triangles import LEAF, build_tree, triangles_of
from tests.physics.camera import scenes


@pytest.mark.parametrize("count", [1, LEAF, LEAF + 1, 100])
def test_every_triangle_is_in_a_leaf_and_every_box_holds_its_halves(count):
  corners = np.random.default_rng(0).normal(size=(count, 3, 3))
  tree = build_tree(corners)
  assert len(tree.triangles) == LEAF * tree.leaves < 2 * max(count, LEAF)
  first = tree.triangles[:, :3]
  found = np.stack([first, first + tree.triangles[:, 3:6], first + tree.triangles[:, 6:]], axis=1)
  flat = np.all(found == found[:, :1], axis=(1, 2))
  assert (~flat).sum() == count
  key = lambda x: x.reshape(len(x), -1)[np.argsort(x[:, 0, 0])]  # noqa: E731
  np.testing.assert_allclose(key(found[~flat]), key(corners), atol=1e-12)
  leaves = found.reshape(tree.leaves, -1, 3)
  np.testing.assert_allclose(tree.boxes[tree.leaves :, :3], leaves.min(axis=1), atol=1e-12)
  for box in range(1, tree.leaves):
    halves = tree.boxes[2 * box : 2 * box + 2]
    np.testing.assert_array_equal(tree.boxes[box], [*halves[:, :3].min(axis=0), *halves[:, 3:].max(axis=0)])
  center, radius = tree.bound
  assert np.linalg.norm(found - center, axis=2).max() <= radius * (1 + 1e-12)


def test_a_height_field_is_closed_and_its_fronts_are_outside():
  """The signed volume under the triangles is that of the prisms below the surface."""
  model = physics.load_model(scenes.GROUND)
  corners = triangles_of(model, 0)
  volume = np.einsum("ni,ni->n", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
  heights = np.reshape(model.hfield_data, (5, 6)) * 0.8 + 0.3
  means = (heights[:-1, :-1] + heights[1:, 1:]) / 3 + (heights[:-1, 1:] + heights[1:, :-1]) / 6
  assert volume == pytest.approx(means.mean() * 4 * 3)


def test_a_mesh_has_its_volume():
  model = physics.load_model(scenes.GROUND)
  corners = triangles_of(model, 1)
  volume = np.einsum("ni,ni->n", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
  spec = mujoco.MjSpec.from_string(scenes.GROUND)
  assert len(corners) == spec.compile().mesh_facenum[0]
  assert 0.1 < volume < 4 / 3 * np.pi * 0.5 * 0.4 * 0.3
