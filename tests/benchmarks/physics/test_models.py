"""The benchmarks' models: every file is there, and a robot stands on the rough ground that is made for it."""

import mujoco
import numpy as np
import pytest

from benchmarks.physics import models

LIMBS = ("thigh", "shin", "foot", "heel_left", "heel_right", "toe_left", "toe_right", "forearm", "hand")
SELF_COLLIDING = {"torso", "head", *(f"{side}_{limb}" for side in ("left", "right") for limb in LIMBS)}
FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")


@pytest.fixture(scope="module")
def rough() -> mujoco.MjModel:
  spec = mujoco.MjSpec.from_file(str(models.FOLDERS["assets"] / "quadruped" / "robot.xml"))
  models.lay_rough_ground(spec)
  return spec.compile()


def test_a_chain_has_a_hinge_and_a_geom_for_each_link() -> None:
  mj = models.chain(3).compile()
  assert (mj.nbody, mj.njnt, mj.ngeom) == (4, 3, 3)
  assert mj.body_parentid.tolist() == [0, 0, 1, 2]
  data = mujoco.MjData(mj)
  mujoco.mj_kinematics(mj, data)
  np.testing.assert_allclose(data.xpos[1:, 0], [0.0, models.LINK, 2 * models.LINK])


def test_meshes_have_the_places_and_sizes_of_the_geoms_that_they_replace() -> None:
  mj = models.load("mesh_biped").mj
  before = mujoco.MjModel.from_xml_path(str(models.FOLDERS["assets"] / "biped" / "robot.xml"))
  names = {mj.geom(i).name for i in range(mj.ngeom) if mj.geom_type[i] == mujoco.mjtGeom.mjGEOM_MESH}
  assert names == SELF_COLLIDING
  data, data_before = mujoco.MjData(mj), mujoco.MjData(before)
  mujoco.mj_forward(mj, data)
  mujoco.mj_forward(before, data_before)
  for name in names:
    centre, expected = data.geom(name).xpos, data_before.geom(name).xpos
    np.testing.assert_allclose(centre, expected, atol=1e-6)
    vertices = mj.mesh_vert[mj.mesh(name).vertadr[0] :][: mj.mesh(name).vertnum[0]]
    radius = before.geom_rbound[before.geom(name).id]
    assert np.linalg.norm(vertices, axis=1).max() == pytest.approx(radius, rel=1e-5)


def test_meshes_collide_with_each_other_and_with_the_floor() -> None:
  model = models.load("mesh_biped")
  pairs = {frozenset({model.geom_names[p.geom1], model.geom_names[p.geom2]}) for p in model.pairs}
  assert {"left_thigh", "right_thigh"} in pairs
  assert {"left_hand", "torso"} in pairs
  assert {"left_toe_left", "floor"} in pairs
  assert {"left_hand", "left_forearm"} not in pairs  # neighbours


def test_quadruped_stands_on_rough_ground_with_its_feet_alone(rough: mujoco.MjModel) -> None:
  data = mujoco.MjData(rough)
  mujoco.mj_resetDataKeyframe(rough, data, rough.key("home").id)
  mujoco.mj_step(rough, data, round(5 / rough.opt.timestep))
  touched = {rough.geom(geom).name for pair in data.contact.geom for geom in pair}
  assert touched == {"floor", *FEET}
  assert data.qpos[2] > 0.15
  assert np.abs(data.qvel).max() < 0.1
