import mujoco
import numpy as np
import pytest
from mujoco import mjtGeom, mjtLightType, mjtTexture

import tasks
from gpurobot.viewer.scenery import FLOOR, dressed, sky
from physics.load import compile_model
from tests.gpurobot import hopping_box

NAMES = [name for name in tasks.available() if not name.startswith("dm/")]  # those need an extra
POLE = """
  <mujoco>
    <default><geom rgba="1 0 0 1" contype="1" conaffinity="1"/></default>
    <worldbody>
      <body name="pole" pos="0 0 2">
        <joint name="hinge" axis="0 1 0"/><geom type="box" size="0.1 0.1 0.5" pos="0 0 0.5"/>
      </body>
    </worldbody>
    <actuator><motor joint="hinge"/></actuator>
  </mujoco>"""
OWN = """
  <mujoco>
    <asset>
      <texture name="night" type="skybox" builtin="flat" width="8" height="48"/><material name="sand"/>
    </asset>
    <worldbody>
      <light directional="true"/>
      <geom name="beach" type="plane" size="3 3 1" material="sand"/>
      <geom name="tiles" type="plane" size="3 3 1"/>
      <body><freejoint/><geom size="0.1"/></body>
    </worldbody>
  </mujoco>"""


def test_a_bare_scene_gets_light_ground_and_sky():
  model = dressed(POLE)
  assert mjtTexture.mjTEXTURE_SKYBOX in model.tex_type
  assert model.light_type.tolist() == [mjtLightType.mjLIGHT_DIRECTIONAL]
  assert model.vis.headlight.ambient.min() >= 0.3
  ground = model.geom(FLOOR)
  assert ground.type == mjtGeom.mjGEOM_PLANE
  assert ground.pos[2] == 1.0  # the pole, when it hangs, is just above
  assert ground.rgba.tolist() == [1, 1, 1, 1]
  assert model.mat_texid[ground.matid[0]].max() >= 0


def test_what_a_scene_has_of_its_own_is_kept():
  model = dressed(OWN)
  assert [texture.name for texture in map(model.texture, range(model.ntex))] == ["night", FLOOR]
  assert model.nlight == 1
  assert model.ngeom == 3
  assert model.geom("beach").matid[0] == model.material("sand").id
  assert model.geom("beach").size[:2].tolist() == [3, 3]
  assert model.geom("tiles").matid[0] == model.material(FLOOR).id
  assert model.geom("tiles").size[:2].tolist() == [0, 0]  # without an edge


def test_light_falls_on_hills_from_a_side():
  plain = mujoco.MjModel.from_xml_string(hopping_box.Task.robot)
  assert plain.light_dir[0].tolist() == [0, 0, -1]
  model = dressed(hopping_box.Task.robot)
  assert abs(model.light_dir[0, :2]).min() > 0.1
  assert not model.geom("hills").castshadow[0]  # it would speckle itself


def test_a_spec_is_left_as_it_was():
  spec = mujoco.MjSpec.from_string(POLE)
  dressed(spec)
  assert len(spec.geoms) == 1
  assert not spec.textures


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_light_and_ground_and_its_physics_stays(name):
  module = tasks.load(name)
  scene = module.Task.scene(module.Config())
  plain, model = compile_model(scene), dressed(scene)
  assert np.isin(model.geom_type, (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_HFIELD)).any()
  assert mjtLightType.mjLIGHT_DIRECTIONAL in model.light_type
  for part in ("body_mass", "body_inertia", "geom_pos", "geom_contype", "geom_conaffinity", "dof_damping"):
    before = getattr(plain, part)
    assert np.array_equal(getattr(model, part)[: len(before)], before), part
  assert not model.geom_contype[plain.ngeom :].any()
  assert not model.geom_conaffinity[plain.ngeom :].any()


def test_the_sky_gets_lighter_towards_the_horizon():
  colours = sky().astype(int)
  assert colours.shape[1:] == (1, 3)
  assert (np.diff(colours[:, 0], axis=0) >= 0).all()
