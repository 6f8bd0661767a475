"""Operational-space control against MuJoCo's Jacobian and mass matrix, and numpy's algebra."""

import mujoco
import numpy as np
import pytest
import torch

from tasks import base
from tasks.shared import osc

HINGES = 7


@pytest.fixture(scope="module")
def poses():
  """Return Jacobians [N, 6, 7] by MuJoCo and by torch, and mass matrices [N, 7, 7], in random poses."""
  model = mujoco.MjModel.from_xml_path(str(base.ASSETS / "arm" / "robot.xml"))
  data, random = mujoco.MjData(model), np.random.default_rng(0)
  theirs, parts, masses = np.zeros((32, 6, model.nv)), [], []
  for pose in theirs:
    data.qpos[:] = random.uniform(*model.jnt_range.T)
    mujoco.mj_forward(model, data)
    mujoco.mj_jacSite(model, data, pose[:3], pose[3:], model.site("grasp").id)
    axes, anchors = data.xaxis[:HINGES], data.xanchor[:HINGES]
    parts.append((axes.copy(), anchors.copy(), data.site("grasp").xpos.copy()))
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    masses.append(full[:HINGES, :HINGES])
  axis, anchor, point = (torch.tensor(np.stack(part, axis=-1)) for part in zip(*parts, strict=True))
  return theirs[:, :, :HINGES], osc.jacobian(axis, anchor, point).permute(2, 0, 1).numpy(), np.stack(masses)


def last(array):
  """Return an array [N, ...] as a float32 tensor [..., N]."""
  return torch.tensor(np.moveaxis(array, 0, -1), dtype=torch.float32)


def test_the_jacobian_is_that_of_mujoco(poses):
  theirs, ours, _ = poses
  np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_the_inertia_of_the_point_is_that_of_numpy(poses):
  jacobian, _, mass = poses
  expected = jacobian @ np.linalg.inv(mass) @ jacobian.transpose(0, 2, 1) + osc.SOFTNESS * np.eye(6)
  inverse = osc.inverse_inertia(last(mass), last(jacobian)).permute(2, 0, 1).numpy()
  np.testing.assert_allclose(inverse, expected, rtol=1e-4, atol=1e-4)


def test_torques_follow_the_formula(poses):
  jacobian, _, mass = poses
  random = np.random.default_rng(1)
  acceleration, posture = random.normal(size=(32, 6)), random.normal(size=(32, HINGES))
  inertia = np.linalg.inv(
    jacobian @ np.linalg.inv(mass) @ jacobian.transpose(0, 2, 1) + osc.SOFTNESS * np.eye(6)
  )
  missing = acceleration[:, :, None] - jacobian @ posture[:, :, None]
  expected = mass @ posture[:, :, None] + jacobian.transpose(0, 2, 1) @ inertia @ missing
  torques = osc.torques(last(mass), last(jacobian), last(acceleration), last(posture))
  np.testing.assert_allclose(torques.T.numpy(), expected[:, :, 0], rtol=1e-3, atol=1e-3)
