"""Reader of robot files: what is left out, and what stays."""

import pytest

from physics.robot import read_legged
from tests.physics.robot.robots import asked, at_home, mjcf, urdf

MESH = '<asset><mesh name="shell" file="shell.obj"/></asset>'


def test_of_a_scene_the_robot_and_a_level_floor_stay(tmp_path):
  world = """<geom name="ground" type="plane" size="5 5 1" rgba="1 0 0 1"/>
    <geom type="box" size="1 1 0.1" pos="3 0 0"/><body name="ball"><freejoint/><geom size="0.1"/></body>"""
  robot, spec = read_legged(asked(tmp_path, mjcf(world=world)))
  mj = spec.copy().compile()
  assert mj.nbody == 10
  assert mj.body_rootid.max() == 1
  assert mj.geom("floor").rgba.tolist() == [1, 0, 0, 1]
  assert "the scene's other 1 bodies and 1 shapes are left out" in robot.doubts


def test_a_mesh_that_is_only_seen_may_be_missing(tmp_path):
  seen = '<geom name="{leg}_foot" type="sphere" size="0.02" pos="0 0 -0.2" mass="0.1"/><geom '
  seen += 'type="mesh" mesh="shell" contype="0" conaffinity="0"'
  text = mjcf(after=MESH).replace(
    '<geom type="box" size="0.25 0.1 0.05" mass="6"/>',
    """<inertial pos="0 0 0" mass="6" diaginertia="0.1 0.1 0.1"/><geom type="box" size="0.25 0.1 0.05"/>
    <geom type="mesh" mesh="shell" contype="0" conaffinity="0"/>""",
  )
  robot, spec = read_legged(asked(tmp_path, text))
  assert robot.doubts[0] == "1 shapes are not drawn: mesh files are missing, such as 'shell'"
  assert len(spec.meshes) == 0


def test_a_mesh_that_collides_may_not_be_missing(tmp_path):
  text = mjcf(after=MESH, foot='name="{leg}_foot"').replace(
    '<geom type="box" size="0.25 0.1 0.05" mass="6"/>', '<geom type="mesh" mesh="shell" mass="6"/>'
  )
  with pytest.raises(ValueError, match=r"shell\.obj"):
    read_legged(asked(tmp_path, text))


@pytest.mark.parametrize("self_collision", [False, True])
def test_shapes_of_contact_pairs_stand_on_the_floor(self_collision, tmp_path):
  text = mjcf().replace("<mujoco>", '<mujoco><default><geom contype="0" conaffinity="0"/></default>', 1)
  pairs = "".join(f'<pair geom1="ground" geom2="{leg}_foot"/>' for leg in ("fl", "fr", "rl", "rr"))
  world = '<geom name="ground" type="plane" size="5 5 1"/>'
  text = text.replace("<worldbody>", f"<worldbody>{world}", 1)
  text = text.replace("</mujoco>", f"<contact>{pairs}</contact></mujoco>")
  robot, spec = read_legged(asked(tmp_path, text, self_collision=self_collision))
  assert robot.feet == ("fl_foot", "fr_foot", "rl_foot", "rr_foot")
  assert robot.guarded == ()
  assert len(at_home(spec, 0.1).contact.geom) == 4


def test_a_file_without_actuators_moves_every_joint(tmp_path):
  robot, _ = read_legged(asked(tmp_path, mjcf(actuators=False)))
  assert len(robot.joints) == 8
  assert robot.doubts[0] == (
    "8 joints have no servo in the file: its gains are guessed from the weight (write env.stiffness)"
  )


def test_a_link_without_inertia_weighs_nothing_where_one_fixed_to_it_does(tmp_path):
  shape = '<collision><geometry><box size="0.3 0.1 0.1"/></geometry></collision>'
  text = urdf().replace("</robot>", "")
  text += f'<link name="case">{shape}</link><joint name="glue" type="fixed"><parent link="trunk"/>'
  text += '<child link="case"/><origin xyz="0 0 0.1"/></joint></robot>'
  robot, _ = read_legged(asked(tmp_path, text))
  assert robot.mass == pytest.approx(9.2)


def test_a_light_on_another_body_of_the_scene_is_left_out_with_it(tmp_path):
  world = """<body name="ball"><freejoint/><geom size="0.1"/></body>
    <light mode="targetbody" target="ball"/><camera name="eye" mode="targetbody" target="trunk"/>"""
  _, spec = read_legged(asked(tmp_path, mjcf(world=world)))
  assert [len(spec.lights), len(spec.cameras)] == [0, 1]
