"""Our own clips: feet neither slip nor sink, the weight is over them, joints keep to their limits."""

import mujoco
import numpy as np
import pytest
import torch

from tasks.core.errors import SettingError
from tasks.motion import settings
from tasks.motion.check import check, clearance
from tasks.motion.clip import states
from tasks.motion.generated_clips import GRAVITY, centre_of_mass
from tasks.motion.library import Library
from tasks.motion.plan import PLANS, Key, course, walk
from tests.tasks.motion.robots import BIPED, DOG, HUMANOID, Config, own, robot_and_model


@pytest.mark.parametrize(
  ("name", "path"), [*((name, HUMANOID) for name in PLANS), ("walk", BIPED), ("jump", BIPED)]
)
def test_feet_on_the_ground_do_not_slip_and_nothing_sinks_or_is_doubted(name, path):
  robot, model = robot_and_model(path)
  clip = own(name, path)
  assert not any(check(clip, model, robot).values())
  lowest = clearance(clip, model)
  assert lowest.min() > -0.02
  frames = Library(model, [clip], 0.02, bodies=[model.body_id(foot) for foot in robot.feet_bodies])
  at = frames.at(torch.arange(len(frames)))
  standing = at.xpos[..., 2] < at.xpos[..., 2].amin() + 0.003
  assert at.linear[..., :2].norm(dim=2)[standing].mean() < 0.03
  assert np.abs(clip.velocities()[2]).max() < 16.0
  flying = (lowest > 0.01).mean()
  assert (flying > 0.05) == (name in ("run", "jump"))


@pytest.mark.parametrize(("name", "path"), [("run", HUMANOID), ("jump", BIPED)])
def test_a_flight_is_free_of_forces_but_gravity_and_of_torques(name, path):
  _, model = robot_and_model(path)
  clip = own(name, path)
  flying = clearance(clip, model) > 0.003
  inside = flying.copy()
  inside[1:-1] &= flying[2:] & flying[:-2]
  velocity, spin = momenta(clip, model)
  acceleration = np.gradient(velocity, 1 / clip.fps, axis=0)[inside]
  np.testing.assert_allclose(acceleration, np.tile([0.0, 0.0, -GRAVITY], (len(acceleration), 1)), atol=1.0)
  pairs = inside[1:] & inside[:-1]
  torque = np.diff(spin, axis=0)[pairs] * clip.fps
  assert len(torque) > 10
  assert np.abs(torque).max() < 10.0  # of robots of 41 and 15 kg; the humanoid had 150 N m and more before


def momenta(clip, model):
  """Return velocities of the centre of mass [T, 3] [m/s] and angular momenta about it [T, 3] [N m s]."""
  data, found = mujoco.MjData(model.mj), []
  for qpos, qvel in zip(*states(clip, model), strict=True):
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model.mj, data)
    mujoco.mj_subtreeVel(model.mj, data)
    found.append((data.subtree_linvel[1].copy(), data.subtree_angmom[1].copy()))
  return (np.array(part) for part in zip(*found, strict=True))


def test_clips_go_where_their_names_say():
  heading = own("turn").root_quat[-1]
  assert 2 * np.arctan2(abs(heading[3]), abs(heading[0])) == pytest.approx(np.pi, abs=0.05)
  assert own("walk").root_pos[-1, 0] == pytest.approx(2.6, abs=0.1)
  speed = own("run").root_pos[-1, 0] / own("run").seconds
  assert speed == pytest.approx(1.48, abs=0.05)
  assert np.ptp(own("squat").root_pos[:, 2]) > 0.28
  shoulder = own("wave").joints.index("right_shoulder_y")
  assert own("wave").joint_pos[:, shoulder].min() < -1.0


def test_the_centre_of_mass_obeys_the_law_of_the_cart_on_a_table():
  time = np.arange(200) / 100
  pushed = np.stack([np.where(time < 1.0, 0.0, 0.2), np.zeros(200)], 1)
  centre = centre_of_mass(time, pushed, np.full(200, 0.9))
  acceleration = np.diff(centre[:, 0], 2) * 100**2
  np.testing.assert_allclose(acceleration, GRAVITY / 0.9 * (centre[:, 0] - pushed[:, 0])[1:-1], atol=1e-6)
  np.testing.assert_allclose(centre[[0, -1], 0], [0.0, 0.2])


def test_a_course_passes_its_keys_and_falls_freely_between_a_take_off_and_a_landing():
  time = np.arange(101) / 100
  keys = [Key(0.2, 0.0, 2.0, -10.0), Key(0.6, 0.0, -2.0, -10.0)]
  height = course(time, keys)
  np.testing.assert_allclose(height[20:61], 2 * (time[20:61] - 0.2) - 5 * (time[20:61] - 0.2) ** 2, atol=1e-9)
  assert height[:20].tolist() == [0.0] * 20


def test_one_foot_carries_the_weight_while_the_other_steps():
  plan = walk(100.0, 12.0)
  lifted = plan.feet[..., 2] > 0.0
  assert not lifted.all(1).any()
  assert (plan.support[lifted] == 0.0).all()
  np.testing.assert_allclose(plan.support.sum(1), 1.0)


def test_other_robots_are_told_what_is_missing():
  robot = robot_and_model(DOG)
  with pytest.raises(SettingError, match=r"env\.motion=walk is for robots with two legs, .*has 4: name a"):
    settings.read(Config(robot=str(DOG)), *robot, 0.02)
