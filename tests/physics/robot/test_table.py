"""Place of a cube before an arm: on the floor or on a table, within reach of a hand that points down."""

import mujoco
import numpy as np
import pytest

from physics.robot import Asked, read_arm
from physics.robot.gripper import GRASP, GRIPS
from physics.robot.table import put_cube
from tests.physics.robot import robots
from tests.physics.robot.arms import asked
from tests.physics.robot.test_gripper import SLIDES, at_home, gripping


def test_our_arm_has_its_cube_where_its_task_states_it_by_hand():
  arm, _ = read_arm(Asked(str(robots.ARM), grips=True))
  table = arm.table
  assert not table.raised
  np.testing.assert_allclose(table.middle, [0.458, 0, 0], atol=0.05)
  np.testing.assert_allclose(table.half, [0.1, 0.15], atol=0.01)
  assert table.highest == pytest.approx(0.25, abs=0.01)
  assert arm.gripper.width == pytest.approx(0.08, abs=1e-3)


def test_at_home_the_hand_points_down_above_the_middle_and_the_elbow_is_higher(tmp_path):
  arm, spec = read_arm(asked(tmp_path, gripping(SLIDES), grips=True))
  _, data = at_home(spec)
  grasp, table = data.site(GRASP), arm.table
  assert grasp.xmat[8] < -0.95
  np.testing.assert_allclose(grasp.xpos[:2], table.middle[:2], atol=0.01 * arm.reach)
  assert 0 < grasp.xpos[2] - table.middle[2] < table.highest
  assert (data.xanchor[2:4, 2] > grasp.xpos[2]).all()


def test_an_arm_high_above_the_floor_gets_a_table(tmp_path):
  floor = '<worldbody><geom type="plane" size="1 1 1"/></worldbody>'
  text = gripping(SLIDES, after=floor).replace('<body name="base">', '<body name="base" pos="0 0 0.7">')
  arm, spec = read_arm(asked(tmp_path, text, grips=True))
  assert arm.table.raised
  assert "cube on a table of z = 0." in arm.table.words()
  model, data = at_home(put_cube(spec, arm.gripper, arm.table))
  for _ in range(300):
    mujoco.mj_step(model, data)
  lies = arm.table.middle + np.array([0, 0, arm.gripper.side / 2])
  np.testing.assert_allclose(data.body("cube").xpos, lies, atol=2e-3)


def test_the_hand_touches_the_cube_and_the_arm_does_not(tmp_path):
  arm, spec = read_arm(asked(tmp_path, gripping(SLIDES), grips=True))
  assert arm.gripper.bodies == ("hand", "left_finger", "right_finger")
  model = put_cube(spec, arm.gripper, arm.table).compile()
  cube = model.geom("cube")

  def touches(body):
    geom = int(np.flatnonzero(model.geom_bodyid == model.body(body).id)[0])
    return bool(
      cube.contype[0] & model.geom_conaffinity[geom] | cube.conaffinity[0] & model.geom_contype[geom]
    )

  found = {body: touches(body) for body in ("world", "hand", "left_finger", "right_finger", "elbow_link")}
  assert found == {
    "world": True,
    "hand": True,
    "left_finger": True,
    "right_finger": True,
    "elbow_link": False,
  }


def test_a_finger_with_a_mesh_touches_the_cube_with_a_flat_pad_alone(tmp_path):
  mesh = '<asset><mesh name="bent" vertex="-.01 0 0 .01 0 0 0 .01 0 -.01 0 .05 .01 0 .05 0 .01 .05"/></asset>'
  text = gripping(SLIDES, after=mesh).replace('<geom type="box" size="0.01 0.005 0.02" pos="0 0.005 0.03"',
    '<geom type="mesh" mesh="bent"')  # fmt: skip
  arm, spec = read_arm(asked(tmp_path, text, grips=True))
  model, data = at_home(put_cube(spec, arm.gripper, arm.table))
  touched = {body: [] for body in ("left_finger", "right_finger")}
  for geom in np.flatnonzero(model.geom_conaffinity & model.geom("cube").contype[0]):
    touched.get(model.body(model.geom_bodyid[geom]).name, []).append(int(geom))
  (pad,), (box,) = touched.values()
  assert model.geom_type[pad] == model.geom_type[box] == mujoco.mjtGeom.mjGEOM_BOX
  np.testing.assert_allclose(model.geom_size[pad], arm.gripper.side * np.array([0.35, 0.1, 0.36]))
  left, right = (data.site(name) for name in GRIPS)
  inner = data.geom_xpos[pad] - model.geom_size[pad][1] * data.geom_xmat[pad].reshape(3, 3)[:, 1]
  np.testing.assert_allclose(inner, left.xpos, atol=1e-6)
  across = (left.xpos - right.xpos) / np.linalg.norm(left.xpos - right.xpos)
  assert (data.geom_xpos[pad] - left.xpos) @ across > 0, "it is outside of the opening"
