"""Legged robots from files: our own are found as their tasks state them by hand, others as they were made."""

import mujoco
import numpy as np
import pytest

import physics
from physics.robot import Asked, read_legged
from tasks import biped, quadruped
from tests.physics.robot.robots import ANT, BIPED, CORNERS, DOG, asked, at_home, mjcf, urdf


def test_our_quadruped_is_what_its_task_says():
  robot, spec = read_legged(Asked(str(DOG)))
  stated = quadruped.Task
  assert (robot.joints, robot.feet, robot.trunk) == (stated.joints, stated.feet, stated.trunk)
  assert robot.guarded == stated.guarded
  assert robot.mirrored == stated.mirrored
  assert robot.stance.tolist() == [0, 0.9, -1.8] * 4
  assert robot.home == "home"
  assert robot.height == pytest.approx(0.285, abs=2e-3)
  assert robot.phases == (0.5, 0.0, 0.0, 0.5)  # a trot: diagonal feet together
  assert robot.doubts == ()
  ours, theirs = physics.load_model(spec), physics.load_model(DOG)
  for name in ("actuator_gainprm", "actuator_biasprm", "actuator_forcerange", "actuator_ctrlrange"):
    np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name))
  assert ours.body_mass.tolist() == theirs.body_mass.tolist()


def test_our_biped_is_what_its_task_says():
  robot, _ = read_legged(Asked(str(BIPED), feet=biped.Task.feet, trunk="torso"))
  stated = biped.Task
  assert (robot.joints, robot.feet, robot.trunk) == (stated.joints, stated.feet, stated.trunk)
  assert robot.quiet == stated.quiet
  assert robot.mirrored == stated.mirrored
  assert robot.phases == stated.phases
  assert [leg[0] for leg in robot.legs] == ["left_hip_pitch", "right_hip_pitch"]


def test_feet_are_found_where_no_geom_has_their_name():
  robot, _ = read_legged(Asked(str(BIPED)))
  assert robot.feet == ("left_ankle_roll", "right_ankle_roll")


def test_an_ant_has_legs_too():
  robot, spec = read_legged(Asked(str(ANT)))
  assert robot.feet_bodies == ("front_left_foot", "back_left_foot", "back_right_foot", "front_right_foot")
  assert robot.mirrored is not None
  assert at_home(spec).xmat[1][8] > 0.95


@pytest.mark.parametrize("angle", [0.0, np.pi / 4])
def test_feet_hold_on_a_slope_in_every_direction(angle):
  """The ground holds 0.8 of the friction; a pyramid gives 0.71 of it along its diagonal, and slides."""
  model = read_legged(Asked(str(DOG)))[1].copy().compile()
  model.geom_friction[:, 0] = 0.2
  slope = np.arctan(0.8 * 0.2)
  along = np.array([np.cos(angle), np.sin(angle)])
  model.opt.gravity[:] = 9.81 * np.array([*np.sin(slope) * along, -np.cos(slope)])
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_step(model, data, 200)
  before = data.site_xpos[:, :2].copy()
  mujoco.mj_step(model, data, 200)
  assert np.abs(data.site_xpos[:, :2] - before).max() < 0.01  # [m] in a second


@pytest.mark.parametrize("text", [mjcf(), urdf()], ids=["MJCF", "URDF"])
def test_a_dog_without_servos_and_home_gets_both_and_stands(text, tmp_path):
  robot, spec = read_legged(asked(tmp_path, text))
  joints = [f"{leg}_{part}" for leg in ("fl", "fr", "rl", "rr") for part in ("hip", "knee")]
  assert robot.joints == tuple(joints)
  assert robot.legs == tuple((f"{leg}_hip", f"{leg}_knee") for leg in ("fl", "fr", "rl", "rr"))
  assert robot.mass == pytest.approx(9.2)
  assert robot.mirrored == ([2, 3, 0, 1, 6, 7, 4, 5], [1] * 8)
  assert robot.effort.tolist() == [30.0] * 8
  assert robot.home == "found"
  assert 0.25 < robot.leg_length < 0.35
  data = at_home(spec)
  assert data.xmat[1][8] > 0.99
  assert data.qpos[2] == pytest.approx(robot.height, abs=0.02)
  assert (data.sensordata.reshape(4, -1)[:, 0] > 0).sum() or data.ncon >= 4
  assert np.abs(data.qvel).max() < 0.05


def test_a_foot_feels_the_ground_and_knows_its_velocity(tmp_path):
  robot, spec = read_legged(asked(tmp_path, mjcf()))
  data = at_home(spec)
  loads = [data.sensor(foot).data[0] for foot in robot.feet]
  assert sum(loads) == pytest.approx(9.81 * robot.mass, rel=0.02)
  assert min(loads) > 10
  assert np.abs(data.sensor("fl_foot_velocity").data).max() < 0.02


def test_what_is_asked_for_counts(tmp_path):
  given = {"stiffness": 50.0, "damping": 2.0, "trunk": "fl_thigh", "feet": ("fl_shank", "rr_foot")}
  robot, _ = read_legged(asked(tmp_path, mjcf(), **given))
  assert robot.stiffness.tolist() == [50.0] * 8
  assert robot.damping.tolist() == [2.0] * 8
  assert robot.trunk == "fl_thigh"
  assert robot.feet == ("fl_shank", "rr_foot")
  assert robot.feet_bodies == ("fl_shank", "rr_shank")


def test_legs_are_found_where_the_only_keyframe_is_a_crouch(tmp_path):
  """There the pelvis, which carries both legs, is nearly as low as the feet."""
  leg = """<body name="{side}_thigh" pos="0 {y} 0"><joint name="{side}_hip" axis="0 1 0" range="-150 60"/>
    <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.3"/><body name="{side}_shank" pos="0 0 -0.3">
    <joint name="{side}_knee" axis="0 1 0" range="0 150"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/>
    <geom name="{side}_foot" type="box" size="0.05 0.04 0.02" pos="0 0 -0.32"/></body></body>"""
  legs = "".join(leg.format(side=side, y=y) for side, y in (("left", 0.1), ("right", -0.1)))
  text = f"""<mujoco><compiler autolimits="true"/><worldbody><body name="torso" pos="0 0 1.1"><freejoint/>
    <geom size="0.1"/><body name="pelvis" pos="0 0 -0.45"><joint name="waist" axis="0 0 1" range="-30 30"/>
    <geom size="0.08"/>{legs}</body></body></worldbody>
    <keyframe><key name="squat" qpos="0 0 0.65 1 0 0 0  0  -1.5 2.6  -1.5 2.6"/></keyframe></mujoco>"""
  robot, _ = read_legged(asked(tmp_path, text))
  assert robot.feet == ("left_shank", "right_shank")
  assert robot.home == "found"
  assert robot.height > 0.8
  assert any("the robot lies in the keyframe 'squat'" in doubt for doubt in robot.doubts)


def test_joints_that_do_not_move_are_held_where_they_are():
  whole, spec = read_legged(Asked(str(BIPED)))
  legs = whole.joints[:12]
  robot, held = read_legged(Asked(str(BIPED), joints=legs))
  assert robot.joints == legs
  before, after = (at_home(one, 0.0) for one in (spec, held))
  assert after.model.nq == before.model.nq - 11
  np.testing.assert_allclose(after.subtree_com[1], before.subtree_com[1], atol=1e-9)
  for name in ("left_wrist", "right_elbow", "torso"):
    np.testing.assert_allclose(after.body(name).xpos, before.body(name).xpos, atol=1e-9)
    np.testing.assert_allclose(after.body(name).xmat, before.body(name).xmat, atol=1e-9)


@pytest.mark.parametrize("self_collision", [False, True])
def test_links_collide_with_each_other_where_asked(self_collision, tmp_path):
  _, spec = read_legged(asked(tmp_path, mjcf(), self_collision=self_collision))
  pairs = physics.load_model(spec).pairs
  assert (len(pairs) > 13) == self_collision  # the floor with the shapes of the dog


def test_links_that_overlap_at_home_do_not_collide(tmp_path):
  pair = (
    '<contact><pair geom1="fl_foot" geom2="fr_foot"/></contact><option><flag contact="disable"/></option>'
  )
  text = mjcf(after=pair, corners={**CORNERS, "fr": (0.2, 0.07)})
  robot, spec = read_legged(asked(tmp_path, text, self_collision=True))
  such = "2 pairs of links overlap at home and do not collide, such as 'fl_thigh' and 'fr_thigh'"
  assert such in robot.doubts
  assert len(at_home(spec, 0.1).contact.geom) == 4  # of the feet with the floor


@pytest.mark.parametrize(
  ("text", "given", "message"),
  [
    (mjcf(base=""), {}, "its base is fixed, so it cannot walk: add <freejoint/> to the trunk.*'fl_thigh'"),
    (mjcf(), {"feet": ("fl_fot",)}, "env.feet: no body, geom or site is named 'fl_fot'; nearest: 'fl_foot'"),
    (mjcf(), {"trunk": "trnk"}, "env.trunk: no body is named 'trnk'; nearest: 'trunk'"),
    (mjcf(), {"joints": ("fl_kne",)}, "env.joints: no moved joint is named 'fl_kne'; nearest: 'fl_knee'"),
    (mjcf(), {"home": "stand"}, "env.home: no keyframe is named 'stand'; it has none; leave env.home out"),
    (mjcf(), {"feet": ("trunk", "fl_foot")}, "env.feet: no joint moves 'trunk' and no other foot"),
    (
      '<mujoco><worldbody><body name="ball"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>',
      {},
      "'ball' floats, but no hinge or slide joint moves its parts",
    ),
    ("<mujoco><geom/></mujoco>", {}, "this is no MJCF or URDF file"),
  ],
)
def test_what_cannot_walk_is_said_in_one_line(text, given, message, tmp_path):
  with pytest.raises(ValueError, match=message) as caught:
    read_legged(asked(tmp_path, text, **given))
  assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
  (tmp_path / "dog.xml").write_text(mjcf())
  with pytest.raises(FileNotFoundError, match=r"there is no such file.*nearest: '.*dog\.xml'"):
    read_legged(Asked(str(tmp_path / "dgo.xml")))


def test_a_floating_body_without_legs_is_refused(tmp_path):
  text = """<mujoco><worldbody><body name="box"><freejoint/><geom type="box" size="1 1 0.2"/>
    <body name="turret" pos="0 0 0.3"><joint name="turn" axis="0 0 1"/><geom size="0.1"/></body></body>
    </worldbody></mujoco>"""
  with pytest.raises(ValueError, match=r"no legs found: below the trunk 'box'.*env\.feet=\[\.\.\.\]"):
    read_legged(asked(tmp_path, text))
