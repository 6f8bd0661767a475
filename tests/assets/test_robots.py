"""The robots are what their SOURCE.md says, and stand, hold and grip in MuJoCo C."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

ASSETS = Path(__file__).parents[2] / "assets"
ARMS = tuple(f"arm/{scene}.xml" for scene in ("robot", "table", "stack", "cabinet", "hole"))
STEADY = ("quadruped/robot.xml", *ARMS, "hand/robot.xml", "humanoid/servos.xml")
SCENES = (*STEADY, "biped/robot.xml", "humanoid/robot.xml")


def at_home(scene: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
  model = mujoco.MjModel.from_xml_path(str(ASSETS / scene))
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
  return model, data


def run(model: mujoco.MjModel, data: mujoco.MjData, seconds: float) -> None:
  mujoco.mj_step(model, data, round(seconds / model.opt.timestep))
  assert not data.warning.number.any()


@pytest.mark.parametrize(
  "folder", ["ant", "arm", "ball_balance", "biped", "cartpole", "hand", "humanoid", "quadcopter", "quadruped"]
)
def test_every_robot_says_where_its_figures_are_from(folder: str) -> None:
  text = (ASSETS / folder / "SOURCE.md").read_text()
  assert "| figure | value | source |" in text
  assert "no file was copied" in " ".join(text.split())


@pytest.mark.parametrize("scene", SCENES)
def test_home_is_a_state_that_the_robot_can_be_in(scene: str) -> None:
  model, data = at_home(scene)
  for joint in np.flatnonzero(model.jnt_limited):
    low, high = model.jnt_range[joint]
    assert low <= data.qpos[model.jnt_qposadr[joint]] <= high, model.joint(joint).name
  low, high = model.actuator_ctrlrange.T
  assert (low <= data.ctrl).all()
  assert (data.ctrl <= high).all()
  mujoco.mj_forward(model, data)
  assert data.contact.dist.min(initial=0.0) > -1e-3


@pytest.mark.parametrize("scene", STEADY)
def test_stays_at_home_for_ten_seconds(scene: str) -> None:
  model, data = at_home(scene)
  home = data.qpos.copy()
  run(model, data, 10)
  assert np.abs(data.qvel).max() < 2e-3
  hinges = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE.value]
  assert np.abs(data.qpos - home)[hinges].max() < 0.25
  for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE.value):
    at = model.jnt_qposadr[joint]
    assert np.abs(data.qpos - home)[at : at + 3].max() < 0.07


@pytest.mark.parametrize("scene", SCENES)
def test_survives_any_control(scene: str) -> None:
  model, data = at_home(scene)
  low, high = model.actuator_ctrlrange.T
  for ctrl in np.random.default_rng(0).uniform(low, high, (200, model.nu)):
    data.ctrl[:] = ctrl
    mujoco.mj_step(model, data, 4)
  assert not data.warning.number.any()
  assert np.abs(data.qvel).max() < 100


def test_quadruped_has_the_published_mass_and_the_order_of_its_motors() -> None:
  model, _ = at_home("quadruped/robot.xml")
  assert model.body_mass.sum() == pytest.approx(5.204 + 4 * (0.591 + 0.92 + 0.135862 + 0.06 + 3 * 0.089))
  names = [f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]
  assert [model.actuator(i).name for i in range(model.nu)] == names
  assert [model.joint(i + 1).name for i in range(model.nu)] == names


def mirrored(model: mujoco.MjModel, body: str) -> np.ndarray:
  """Return position, centre of mass and principal inertias of a body's mirror image."""
  found = model.body(body)
  return np.concatenate([[1, -1, 1] * found.pos, [1, -1, 1] * found.ipos, found.inertia])


@pytest.mark.parametrize(
  ("scene", "right", "left", "parts"),
  [
    ("quadruped/robot.xml", "FR", "FL", ("hip", "thigh")),  # one figure serves all calves
    ("quadruped/robot.xml", "RR", "RL", ("hip", "thigh")),
    ("biped/robot.xml", "right", "left", ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_roll")),
    ("biped/robot.xml", "right", "left", ("shoulder_roll", "shoulder_yaw", "elbow", "wrist")),
    ("humanoid/robot.xml", "right", "left", ("thigh", "shin", "foot", "upper_arm", "lower_arm")),
  ],
)
def test_limbs_are_mirror_images(scene: str, right: str, left: str, parts: tuple[str, ...]) -> None:
  model, _ = at_home(scene)
  for part in parts:
    other = model.body(f"{left}_{part}")
    expected = np.concatenate([other.pos, other.ipos, other.inertia])
    np.testing.assert_allclose(mirrored(model, f"{right}_{part}"), expected, atol=1e-12)


def test_biped_has_twenty_three_joints_in_the_order_of_its_actuators() -> None:
  model, data = at_home("biped/robot.xml")
  assert model.nu == 23
  assert [model.joint(i + 1).name for i in range(23)] == [model.actuator(i).name for i in range(23)]
  mujoco.mj_forward(model, data)
  left, right = data.geom("left_hand").xpos, data.geom("right_hand").xpos
  np.testing.assert_allclose(left * [1, -1, 1], right, atol=2e-5)
  assert 0.6 < left[2] < 0.8  # beside the hips


def test_biped_falls_and_lies_still() -> None:
  model, data = at_home("biped/robot.xml")
  assert model.body_mass.sum() == pytest.approx(32.1, abs=0.05)
  run(model, data, 0.2)
  feet = sum(data.sensor(f"{side}_foot").data[0] for side in ("left", "right"))
  assert feet == pytest.approx(9.81 * model.body_mass.sum(), rel=0.05)
  run(model, data, 10)
  assert data.qpos[2] < 0.3
  assert np.abs(data.qvel).max() < 1e-3


def test_humanoid_has_the_published_mass_and_stands_on_flat_feet() -> None:
  """The mass is the one that MuJoCo computes for the published file."""
  model, data = at_home("humanoid/robot.xml")
  assert model.body_mass.sum() == pytest.approx(40.84, abs=0.01)
  assert [model.actuator(i).name for i in range(model.nu)] == [model.joint(i + 1).name for i in range(21)]
  mujoco.mj_forward(model, data)
  touching = {model.geom(geom).name for pair in data.contact.geom for geom in pair}
  feet = {f"{side}_foot_{part}" for side in ("left", "right") for part in ("inside", "outside")}
  assert touching == {"floor"} | feet


@pytest.mark.parametrize(
  ("pose", "parts"),
  [
    ({"left_hip_x": 15, "right_hip_x": 15}, ("left_shin", "right_shin")),
    ({"left_shoulder_x": 15, "left_elbow": -90}, ("left_lower_arm", "pelvis")),
    ({"left_shoulder_x": 15, "left_elbow": -90}, ("left_lower_arm", "left_thigh")),
  ],
)
def test_humanoid_touches_itself(pose: dict[str, float], parts: tuple[str, str]) -> None:
  model, data = at_home("humanoid/robot.xml")
  for joint, angle in pose.items():
    data.joint(joint).qpos[:] = np.deg2rad(angle)
  mujoco.mj_forward(model, data)
  pairs = [{model.body(model.geom_bodyid[geom]).name for geom in pair} for pair in data.contact.geom]
  assert set(parts) in pairs


def test_quadruped_feels_its_weight_in_its_feet() -> None:
  model, data = at_home("quadruped/robot.xml")
  run(model, data, 10)
  weight = 9.81 * model.body_mass.sum()
  touch = sum(data.sensor(f"{leg}_foot").data[0] for leg in ("FR", "FL", "RR", "RL"))
  assert touch == pytest.approx(weight, rel=2e-3)
  up = data.body("trunk").xmat.reshape(3, 3)[2]
  assert data.sensor("accelerometer").data @ up == pytest.approx(9.81, rel=1e-3)


def test_arm_carries_its_own_weight_within_its_torque() -> None:
  model, data = at_home("arm/robot.xml")
  run(model, data, 1)
  np.testing.assert_allclose(data.qpos, model.key("home").qpos, atol=1e-6)
  carried = np.abs(data.qfrc_gravcomp[:7])
  assert carried.max() > 10
  assert (carried < model.jnt_actfrcrange[:7, 1]).all()


def test_arm_hand_is_where_the_published_frames_put_it() -> None:
  model, data = at_home("arm/robot.xml")
  data.qpos[:] = 0
  mujoco.mj_forward(model, data)
  reach = np.array(
    [0.088, 0, 0.333 + 0.316 + 0.384 - 0.107 - 0.1034]
  )  # all joints at zero: the hand points down
  np.testing.assert_allclose(data.site("grasp").xpos, reach, atol=1e-6)


def test_arm_lifts_the_cube() -> None:
  model, data = at_home("arm/table.xml")
  down, up = (0.0, 0.4059, 0.0, -2.5013, 0.0, 2.9072, 0.7854), model.key("home").ctrl[:7]
  for joints, opening, seconds in ((down, 0.07, 2), (down, 0.0, 1), (up, 0.0, 3)):
    data.ctrl[:7], data.ctrl[7] = joints, opening
    run(model, data, seconds)
  assert data.body("cube").xpos[2] > 0.07
  assert data.joint("left_finger").qpos[0] == pytest.approx(0.025, abs=1.5e-3)
  assert data.joint("right_finger").qpos[0] == pytest.approx(0.025, abs=1.5e-3)


def test_hand_keeps_the_cube_while_its_fingers_move() -> None:
  model, data = at_home("hand/robot.xml")
  home, (low, high) = data.ctrl.copy(), model.actuator_ctrlrange.T
  for offset in np.random.default_rng(0).uniform(-0.25, 0.25, (100, model.nu)):
    data.ctrl[:] = np.clip(home + offset * (high - low), low, high)
    mujoco.mj_step(model, data, 5)
  assert data.body("cube").xpos[2] == pytest.approx(0.544, abs=0.02)
  assert model.nu == 16


def test_table_keeps_its_feet_where_they_are_while_its_legs_move() -> None:
  model = mujoco.MjModel.from_xml_path(str(ASSETS / "ball_balance/robot.xml"))
  data = mujoco.MjData(model)
  assert (model.neq, model.nu) == (3, 3)
  torn = 0.0
  for speed in np.random.default_rng(0).uniform(-5, 5, (500, 3)):
    data.ctrl[:] = np.clip(data.ctrl + 0.01 * speed, -0.6, 0.6)
    mujoco.mj_step(model, data, 2)
    torn = max(torn, np.abs(data.efc_pos[: 3 * model.neq]).max())  # [m]
  assert torn < 0.014
  assert not data.warning.number.any()
