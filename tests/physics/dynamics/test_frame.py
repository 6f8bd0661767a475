"""Frames of every kind of element against MuJoCo's."""

import mujoco
import numpy as np
import pytest

from physics.dynamics.frame import BODY, CAMERA, GEOM, SITE, XBODY, frame
from physics.dynamics.kinematics import poses
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at

FIELDS = {BODY: "xi", XBODY: "x", GEOM: "geom_x", SITE: "site_x", CAMERA: "cam_x"}


@pytest.fixture(scope="module")
def case():
  model = load("sensors")
  qpos = random_states(model, 1).qpos[0]
  return model, poses(model, qpos.tolist()), mujoco_at(model, qpos)


@pytest.mark.parametrize("kind", FIELDS)
def test_frames_are_mujocos(case, kind):
  model, p, data = case
  positions, rotations = (getattr(data, FIELDS[kind] + part) for part in ("pos", "mat"))
  assert len(positions) > 0
  for index, (position, rotation) in enumerate(zip(positions, rotations, strict=True)):
    found, quaternion = frame(model, p, kind, index), np.zeros(4)
    np.testing.assert_allclose(found.world, position, atol=1e-12)
    np.testing.assert_allclose(found.rotation, rotation.reshape(3, 3), atol=1e-12)
    mujoco.mju_mat2Quat(quaternion, rotation)
    assert abs(np.dot(quaternion, found.quaternion.components)) == pytest.approx(1.0, abs=1e-12)


def test_offsets_span_trees(case):
  model, p, data = case
  ball, imu = model.geom_id("ball"), data.site("imu").id
  found = frame(model, p, SITE, imu).offset(frame(model, p, GEOM, ball))
  np.testing.assert_allclose(found, data.site_xpos[imu] - data.geom_xpos[ball], atol=1e-12)
