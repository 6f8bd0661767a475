"""Configurations whose parts follow paths: a planar arm by hand, and a floating body with a leg."""

import mujoco
import numpy as np

import physics
from physics.inverse_kinematics import Goal, follow

ARM = """
<mujoco>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 0 1" limited="true" range="-180 180"/>
      <geom type="capsule" fromto="0 0 0 1 0 0" size="0.05"/>
      <body name="lower" pos="1 0 0">
        <joint name="elbow" axis="0 0 1" limited="true" range="0 150"/>
        <geom type="capsule" fromto="0 0 0 1 0 0" size="0.05"/>
        <body name="hand" pos="1 0 0"><geom size="0.05"/></body>
      </body>
    </body>
  </worldbody>
</mujoco>"""
FLOATING = """
<mujoco>
  <worldbody>
    <body name="trunk">
      <freejoint/>
      <geom size="0.1" mass="2"/>
      <body name="foot" pos="0 0 -0.5">
        <joint name="knee" type="slide" axis="0 0 1"/>
        <geom size="0.05" mass="1"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def evaluated(model, qpos):
  data = mujoco.MjData(model.mj)
  data.qpos[:] = qpos
  mujoco.mj_forward(model.mj, data)
  return data


def test_a_hand_follows_a_path_and_the_elbow_bends_the_way_it_can():
  model = physics.load_model(ARM)
  angle = np.linspace(0.3, 1.2, 20)
  path = 1.5 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
  found = follow(model, np.array([0.0, 1.0]), [Goal("place", path, 1000.0, model.body_id("hand"))])
  bend = np.arccos((1.5**2 - 2) / 2)  # law of cosines
  np.testing.assert_allclose(found[:, 1], bend, atol=1e-3)
  np.testing.assert_allclose(found[:, 0], angle - bend / 2, atol=1e-3)


def test_joints_stay_within_their_ranges_where_a_goal_asks_for_more():
  model = physics.load_model(ARM)
  pose = np.tile([0.5, -2.0], (3, 1))
  found = follow(model, np.array([0.0, 1.0]), [Goal("pose", pose, 1.0)])
  np.testing.assert_allclose(found, [[0.5, 0.0]] * 3, atol=1e-3)


def test_weights_of_a_pose_are_those_of_its_joints():
  model = physics.load_model(ARM)
  goals = [
    Goal("pose", np.array([[0.5, 1.0]]), np.array([1.0, 0.0])),
    Goal("pose", np.array([[0.0, 0.2]]), 1.0),
  ]
  np.testing.assert_allclose(follow(model, np.zeros(2), goals), [[0.25, 0.2]], atol=1e-3)


def test_centre_of_mass_turn_and_place_hold_together():
  model = physics.load_model(FLOATING)
  turn = np.array([[np.cos(0.4), 0.0, np.sin(0.4), 0.0]])
  goals = [
    Goal("centre", np.array([[0.2, 0.0, 1.0]]), 1000.0),
    Goal("turn", turn, 1000.0, model.body_id("trunk")),
    Goal("middle", np.array([[0.0, 0.0, 0.7]]), 1.0, model.body_id("foot")),
  ]
  data = evaluated(model, follow(model, model.qpos0, goals)[0])
  np.testing.assert_allclose(data.subtree_com[1], [0.2, 0.0, 1.0], atol=2e-3)
  np.testing.assert_allclose(data.xquat[1], turn[0], atol=2e-3)
