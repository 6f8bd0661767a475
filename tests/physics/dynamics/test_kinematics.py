"""Mocap bodies, and places far from the origin; test_parity.py compares xpos and xquat of every model."""

import mujoco
import numpy as np

from physics.dynamics.kinematics import Mocap, Poses, dof_groups, joint_motion, poses
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load


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
