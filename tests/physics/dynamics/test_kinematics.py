"""Poses, joint axes and velocities on plain numbers, against MuJoCo."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import Vector
from physics.dynamics.kinematics import (
  Mocap,
  Poses,
  dof_groups,
  joint_motion,
  point_jacobian,
  poses,
  propagate,
  velocities,
)
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at

MODELS = ("ball_limit", "springs", "self_contact", "static_shapes", "gymnasium/walker2d_v5")


@pytest.fixture(scope="module", params=MODELS)
def model(request):
  return load(request.param)


@pytest.fixture(scope="module")
def cases(model):
  """Return three states: positions, velocities, the poses that they give, MuJoCo's data."""
  states = random_states(model, 3)
  return [
    (qpos.tolist(), qvel.tolist(), poses(model, qpos.tolist()), mujoco_at(model, qpos, qvel))
    for qpos, qvel in zip(states.qpos, states.qvel, strict=True)
  ]


def centers(model, p, data):
  """Return MuJoCo's reference point of every body's tree, relative to ours."""
  return [
    Vector(*(data.subtree_com[model.body_rootid[body]] - np.array(p.origin[body])))
    for body in range(model.nbody)
  ]


def same_rotation(found, expected):
  np.testing.assert_allclose(np.outer(found, found), np.outer(expected, expected), atol=1e-12)


def test_poses_are_mujocos(model, cases):
  for _, _, p, data in cases:
    for body in range(model.nbody):
      np.testing.assert_allclose(p.world(body), data.xpos[body], atol=1e-12)
      np.testing.assert_allclose(p.rotation[body], data.xmat[body].reshape(3, 3), atol=1e-12)
      same_rotation(p.quaternion[body].components, data.xquat[body])
      np.testing.assert_allclose(p.world(body, Vector(*model.body_ipos[body])), data.xipos[body], atol=1e-12)


def test_joint_axes_are_mujocos(model, cases):
  for _, _, p, data in cases:
    at = centers(model, p, data)
    for dof, motion in enumerate(p.cdof):
      found = (*motion.angular, *motion.at(at[model.dof_bodyid[dof]]))
      np.testing.assert_allclose(found, data.cdof[dof], atol=1e-12)


def test_velocities_are_mujocos(model, cases):
  for _, qvel, p, data in cases:
    at, (found, _) = centers(model, p, data), velocities(model, p, qvel)
    for body in range(1, model.nbody):
      velocity = (*found[body].angular, *found[body].at(at[body]))
      np.testing.assert_allclose(velocity, data.cvel[body], atol=1e-11)


def test_propagated_rates_are_the_velocities(model, cases):
  for _, qvel, p, _ in cases:
    for one, other in zip(propagate(model, p, qvel), velocities(model, p, qvel)[0], strict=True):
      np.testing.assert_allclose(one.components, other.components, atol=1e-12)


def test_bodies_at_rest_accelerate_against_gravity(model, cases):
  for _, _, p, _ in cases:
    _, accelerations = velocities(model, p, [0.0] * model.nv)
    for acceleration in accelerations:
      assert acceleration.angular == (0.0, 0.0, 0.0)
      np.testing.assert_array_equal(acceleration.linear, -np.asarray(model.gravity))


def test_bias_acceleration_is_the_change_of_velocity():
  """A body's acceleration at constant joint velocities, by central differences of its velocity."""
  model, h = load("springs"), 1e-5
  states = random_states(model, 1, seed=3)
  qpos, qvel = states.qpos[0], states.qvel[0]

  def velocity(time):
    at = qpos.copy()
    mujoco.mj_integratePos(model.mj, at, qvel, time)
    p = poses(model, at.tolist())
    return p, [motion.at(-p.origin[body]) for body, motion in enumerate(propagate(model, p, qvel.tolist()))]

  now, (_, after), (_, before) = poses(model, qpos.tolist()), velocity(h), velocity(-h)
  _, bias = velocities(model, now, qvel.tolist())
  for body in range(1, model.nbody):
    motion = bias[body].at(-now.origin[body])
    rate = (np.array(after[body]) - np.array(before[body])) / (2 * h)
    angular_moves_origin = np.array(motion) + np.asarray(model.gravity)
    np.testing.assert_allclose(angular_moves_origin, rate, atol=1e-6)


def test_far_from_the_origin_relative_poses_are_the_same():
  model = load("self_contact")
  near = random_states(model, 1).qpos[0]
  far = near + np.array([1000.0, -500.0, 0.0] + [0.0] * (model.nq - 3))
  one, other = (poses(model, qpos.tolist()) for qpos in (near, far))
  assert isinstance(one, Poses)
  assert (one.position, one.rotation, one.cdof) == (other.position, other.rotation, other.cdof)
  assert one.origin != other.origin


def test_dofs_that_move_together():
  free, ball, hinge = load("self_contact"), load("ball_limit"), load("gymnasium/walker2d_v5")
  assert dof_groups(free, 1) == [[0, 1, 2], [3, 4, 5]]
  assert dof_groups(hinge, 1) == [[0], [1], [2]]
  assert [len(group) for body in range(1, ball.nbody) for group in dof_groups(ball, body)].count(3) > 0
  p = poses(free, free.qpos0.tolist())
  motion = joint_motion(p, range(3, 6), [0.0] * 3 + [1.0, 2.0, 3.0] + [0.0] * (free.nv - 6))
  np.testing.assert_allclose(motion.components, [1, 2, 3, 0, 0, 0], atol=1e-15)


def test_point_jacobians_are_mujocos(model, cases):
  local = (0.1, -0.2, 0.3)
  for _, _, p, data in cases:
    for body in range(model.nbody):
      found, linear, angular = np.zeros((2, 3, model.nv)), np.zeros((3, model.nv)), np.zeros((3, model.nv))
      for dof, column in point_jacobian(model, p, body, p.relative(body, Vector(*local))).items():
        found[:, :, dof] = column, p.cdof[dof].angular
      point = np.array(p.world(body, Vector(*local)))
      mujoco.mj_jac(model.mj, data, linear, angular, point, body)
      np.testing.assert_allclose(found, (linear, angular), atol=1e-12)


def test_mocap_bodies_are_where_they_are_put():
  model = load_model("""<mujoco><worldbody>
    <body mocap="true" pos="3 2 1"><geom size="1"/>
      <body pos="0 1 0" quat="1 1 0 0"><geom size="1"/></body>
      <body pos="1 0 0"><joint axis="0 0 1"/><geom size="1" pos="0 0 1"/></body>
    </body>
    <body mocap="true" euler="30 0 0"><geom size="1"/></body>
  </worldbody></mujoco>""")
  at, turn = [1.0, -2.0, 0.5, 4.0, 5.0, 6.0], [0.5, -1.0, 0.25, 2.0, 1.0, 0.0, 3.0, 0.0]
  data = mujoco.MjData(model.mj)
  for given in (None, Mocap(at, turn)):
    if given:
      data.mocap_pos[:], data.mocap_quat[:] = np.reshape(at, (2, 3)), np.reshape(turn, (2, 4))
    data.qpos[:] = 0.7
    mujoco.mj_forward(model.mj, data)
    p = poses(model, [0.7], given)
    for body in range(1, model.nbody):
      np.testing.assert_allclose(p.world(body), data.xpos[body], atol=1e-12)
      np.testing.assert_allclose(p.rotation[body], data.xmat[body].reshape(3, 3), atol=1e-12)
