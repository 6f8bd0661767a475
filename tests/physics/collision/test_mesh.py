"""Convex meshes with planes, against MuJoCo's contacts."""

import numpy as np
import pytest

from physics.load import load_model
from tests.physics.collision.scene import found_contacts, mujoco_contacts
from tests.physics.oracle import assert_same_rows

RANDOM = np.random.default_rng(3)
ANGLES = np.sort(RANDOM.uniform(0, 2 * np.pi, 9))
SOLIDS = {
  "brick": np.array([[x, y, z] for x in (-1, 1) for y in (-2, 2) for z in (-0.5, 0.5)]) * 0.1,
  "prism": np.array([[0.2 * np.cos(a), 0.1 * np.sin(a), z] for a in ANGLES for z in (-0.05, 0.05)]),
  "stone": RANDOM.normal(size=(40, 3)) * 0.1,  # most of its vertices are inside
}


def scene(points, count):
  """Return free meshes over a tilted plane."""
  body = '<body><freejoint/><geom type="mesh" mesh="solid" contype="0" margin="0.01"/></body>'
  vertices = " ".join(f"{x:.6f}" for x in points.ravel())
  return load_model(f"""<mujoco><asset><mesh name="solid" vertex="{vertices}"/></asset>
    <worldbody><geom type="plane" size="1 1 1" euler="10 20 0"/>{body * count}</worldbody></mujoco>""")


@pytest.mark.parametrize("solid", SOLIDS)
def test_contacts_are_mujocos(solid):
  model, random, counts = scene(SOLIDS[solid], 2), np.random.default_rng(0), []
  place = random.uniform(-0.2, (0.2, 0.2, 0.8), (150, 2, 3))
  quaternion = np.array([1.0, 0, 0, 0]) + random.normal(size=(150, 2, 4)) * [0, 1, 1, 1] * 0.4
  qpos = np.concatenate([place, quaternion], axis=2).reshape(150, -1)
  for state, found in zip(qpos, found_contacts(model, qpos), strict=True):
    expected = mujoco_contacts(model, state)
    assert_same_rows(found, expected)
    counts.append(len(expected))
  assert min(counts) == 0
  assert max(counts) == 2 * (3 if solid == "stone" else 4)


def test_a_brick_lies_on_four_corners():
  model = scene(SOLIDS["brick"], 1)
  lying = np.array([[0, 0, 0, *model.mj.geom_quat[0]]])
  lying[0, :3] = model.mj.geom_pos[0] + 0.04 * model_normal(model)
  (found,) = found_contacts(model, lying)
  assert len(found) == 4
  np.testing.assert_allclose(found[:, 1], -0.01, atol=1e-6)


def model_normal(model):
  """Return the plane's normal."""
  w, x, y, z = model.mj.geom_quat[0]
  return np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
