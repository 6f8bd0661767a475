import mujoco
import numpy as np
import pytest
from mujoco import mjtGeom

from gpurobot.viewer.marks import add_goal, draw_arrows

HAND = """
  <mujoco>
    <asset><mesh name="palm" vertex="0 0 0  1 0 0  0 2 0  0 0 3"/></asset>
    <worldbody>
      <body name="hand" pos="1 2 3" euler="20 30 40">
        <freejoint/>
        <geom name="palm" type="mesh" mesh="palm" pos="0.1 0.2 0.3" euler="50 0 10"/>
        <geom name="hull" size="2" group="3"/>
        <site name="grip" pos="0.5 0 0" euler="0 90 0"/>
        <body pos="0 0 1">
          <joint name="bend"/><geom name="finger" type="capsule" size="0.1" fromto="0 0 0 0 1 1"/>
        </body>
      </body>
      <body pos="9 9 9"><geom name="other" size="1"/></body>
    </worldbody>
    <keyframe><key qpos="4 5 6 0.6 0 0.8 0 0.7"/></keyframe>
  </mujoco>"""


@pytest.mark.parametrize("frame", ["grip", "hand"])
def test_a_goal_is_a_copy_of_what_the_frame_carries(frame):
  spec = mujoco.MjSpec.from_string(HAND)
  add_goal(spec, "goal", frame)
  model = spec.compile()
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_kinematics(model, data)
  origin = data.body(frame) if frame == "hand" else data.site(frame)
  data.mocap_pos[0] = origin.xpos
  mujoco.mju_mat2Quat(data.mocap_quat[0], origin.xmat)
  mujoco.mj_kinematics(model, data)
  copies = np.flatnonzero(model.geom_bodyid == model.body("goal").id)
  originals = [model.geom(name).id for name in ("palm", "finger")]
  assert len(copies) == 2
  np.testing.assert_allclose(data.geom_xpos[copies], data.geom_xpos[originals], atol=1e-6)
  np.testing.assert_allclose(data.geom_xmat[copies], data.geom_xmat[originals], atol=1e-6)
  assert model.geom_type[copies].tolist() == model.geom_type[originals].tolist()
  assert (model.geom_rgba[copies, 3] < 1).all()
  for touches in (model.geom_contype, model.geom_conaffinity, model.geom_castshadow):
    assert not touches[copies].any()


def test_a_goal_without_a_frame_is_a_ball():
  spec = mujoco.MjSpec.from_string(HAND)
  add_goal(spec, "goal", None)
  model = spec.compile()
  assert model.geom_type[model.geom_bodyid == model.body("goal").id].tolist() == [mjtGeom.mjGEOM_SPHERE]


def test_arrows_lead_from_start_to_end_in_two_colours():
  model = mujoco.MjModel.from_xml_string(HAND)
  scene = mujoco.MjvScene(model, 10)
  draw_arrows(scene, [np.array([[0.0, 0, 1], [0, 2, 1]]), np.array([[0.0, 0, 1], [1, 0, 1]])])
  assert scene.ngeom == 2
  commanded, actual = scene.geoms[:2]
  assert commanded.type == mjtGeom.mjGEOM_ARROW
  assert commanded.pos.tolist() == [0, 0, 1]
  np.testing.assert_allclose(commanded.mat[:, 2], [0, 1, 0], atol=1e-6)
  np.testing.assert_allclose(actual.mat[:, 2], [1, 0, 0], atol=1e-6)
  assert commanded.rgba[1] > commanded.rgba[2]
  assert actual.rgba[1] < actual.rgba[2]
