import numpy as np
import pytest

from physics import load_model
from physics.save import FILES, save_model
from physics.urdf import read_urdf
from tests.test_house import ROOT

TETRAHEDRON = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MJCF = """<mujoco><compiler meshdir="meshes"/><asset><mesh file="part.obj"/></asset><worldbody>
  <body><freejoint/><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""
URDF = """<robot name="r"><link name="a"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="meshes/part.obj"/></geometry></collision></link></robot>"""


@pytest.mark.parametrize("robot", ["quadruped", "biped"])
def test_what_is_written_is_the_model(robot, tmp_path):
  source = ROOT / "assets" / robot / "robot.xml"
  assert save_model(source, tmp_path / "robot.xml") == [tmp_path / "robot.xml"]
  before, after = load_model(source), load_model(tmp_path / "robot.xml")
  for name in ("joint_names", "actuator_names", "key_names", "timestep", "integrator", "cone"):
    assert getattr(before, name) == getattr(after, name)
  for name in (
    "body_mass", "body_inertia", "body_ipos", "dof_armature", "dof_damping", "dof_frictionloss", "jnt_range",
    "geom_size", "geom_pos", "geom_friction", "actuator_gainprm", "actuator_biasprm", "actuator_forcerange",
    "actuator_ctrlrange", "key_qpos", "key_ctrl",
  ):  # fmt: skip
    np.testing.assert_allclose(getattr(before, name), getattr(after, name), atol=2e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["file", "text", "spec", "urdf"])
def test_meshes_come_along(kind, tmp_path, monkeypatch):
  place = tmp_path / "source" / "meshes"
  place.mkdir(parents=True)
  (place / "part.obj").write_text(TETRAHEDRON)
  for name, text in (("robot.xml", MJCF), ("robot.urdf", URDF)):
    (place.parent / name).write_text(text)
  monkeypatch.chdir(place.parent)
  sources = {"file": "robot.xml", "text": MJCF, "urdf": "robot.urdf"}
  source = read_urdf("robot.urdf", floating=True) if kind == "spec" else sources[kind]
  before, folder = load_model(source), tmp_path / "export"
  folder.mkdir()
  written = save_model(source, folder / "robot.xml")
  assert {path.parent for path in written} == {folder, folder / FILES}
  (place / "part.obj").unlink()
  folder = folder.rename(tmp_path / "elsewhere")
  after = load_model(folder / "robot.xml")
  np.testing.assert_allclose(before.body_mass, after.body_mass)
  np.testing.assert_allclose(before.mj.mesh_vert, after.mj.mesh_vert, atol=1e-6)


def test_a_compiled_model_cannot_be_written(tmp_path):
  with pytest.raises(ValueError, match="a compiled model has no MJCF"):
    save_model(load_model("<mujoco/>").mj, tmp_path / "robot.xml")
