"""Motion track: errors and rewards by hand, starts on the motion, ends, and other robots."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch

from tasks import motion_track
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip
from tasks.motion.read import write_npz
from tasks.shared import quat
from tests.tasks import in_mujoco
from tests.tasks.motion.robots import BIPED, DOG, own, robot_and_model

STILL = {"start_place": 0.0, "start_turn": 0.0, "start_velocity": 0.0, "start_angle": 0.0}


build = functools.partial(in_mujoco.build, motion_track)


def place(task, row, **changes):
  """Put the robots on a row of the motion, as after a step, and compare."""
  frames = task.library.at(torch.full((task.num_envs,), row))
  task.clip.zero_()
  task.frame.fill_(row)
  task.sim.qpos.copy_(frames.qpos)
  task.sim.qvel.copy_(frames.qvel)
  task.sim.forward()
  for name, (column, value) in changes.items():
    getattr(task.sim, name)[:, column] += value
  task.sim.forward()


def test_on_the_motion_all_errors_are_those_of_half_a_physics_step():
  task = build(motion="wave", **STILL)
  task.reset()
  place(task, 60)
  task.compare()
  assert (task.squares[:, :4].sqrt() < 0.02).all()  # it moves by that in a physics step
  terms = task.reward()
  assert all((terms[name] > 0.95).all() for name in motion_track.ERRORS)
  assert not task.lost.any()


def test_the_anchor_is_compared_in_the_world_and_bodies_beside_it():
  task = build(motion="wave", see_velocity=True, **STILL)
  task.reset()
  place(task, 0, qpos=(0, 0.3))
  turned = quat.from_rotation_vector(torch.tensor([[0.0, 0.0, 0.4]]))
  task.sim.qpos[:, 3:7] = quat.multiply(turned, task.sim.qpos[:, 3:7])
  task.sim.forward()
  task.compare()
  errors = dict(zip(motion_track.ERRORS, task.squares[0].sqrt().tolist(), strict=True))
  assert errors["anchor_place"] == pytest.approx(0.3, abs=2e-3)
  assert errors["anchor_turn"] == pytest.approx(0.4, abs=2e-3)
  assert errors["body_place"] < 2e-3
  assert errors["body_turn"] < 2e-3
  assert task.reward()["anchor_place"][0] == pytest.approx(math.exp(-1), abs=0.02)
  assert task.reward()["anchor_turn"][0] == pytest.approx(math.exp(-1), abs=0.02)
  away = task.observe()["policy"]["anchor_place"][0]  # of the motion's anchor, in the robot's axes
  torch.testing.assert_close(
    away[:2].float(), -0.3 * torch.tensor([math.cos(0.4), -math.sin(0.4)]), atol=5e-3, rtol=0
  )


@pytest.mark.parametrize(
  ("change", "lost"),
  [({"qpos": (2, 0.2)}, False), ({"qpos": (2, 0.3)}, True), ({"qpos": (0, 5.0)}, False)],
)
def test_the_motion_is_lost_by_height_but_not_by_place(change, lost):
  task = build(motion="wave", **STILL)
  task.reset()
  place(task, 0, **change)
  task.compare()
  assert task.terminated().tolist() == [lost] * 2
  assert task.success().tolist() == [not lost] * 2


def test_an_end_that_is_too_low_or_a_tilt_loses_the_motion():
  task = build(motion="wave", lost_height=9.0, lost_tilt=9.0, **STILL)
  task.reset()
  knee = task.model.jnt_qposadr[task.model.joint_id("left_hip_y")]
  place(task, 0, qpos=(int(knee), -1.2))
  task.compare()
  assert task.lost.all()
  task = build(motion="wave", lost_height=9.0, lost_end=9.0, **STILL)
  task.reset()
  place(task, 0)
  task.sim.qpos[:, 3:7] = torch.tensor([math.cos(0.7), 0.0, math.sin(0.7), 0.0])
  task.sim.forward()
  task.compare()
  assert task.lost.all()


def test_it_starts_on_the_motion_and_its_end_truncates_with_success():
  task = build(motion="wave", starts="anywhere", **STILL)
  task.reset()
  frames = task.library.at(task.row())
  torch.testing.assert_close(task.sim.qpos.float(), frames.qpos)
  torch.testing.assert_close(task.sim.qvel.float(), frames.qvel)
  task.frame.fill_(task.library.counts[0] - 3)
  first, second = (task.step(torch.zeros(2, task.num_actions)) for _ in range(2))
  assert not first["truncated"].any()
  assert second["truncated"].all()
  assert not second["terminated"].any()
  assert second["success"].all()


def test_actions_are_shares_of_the_torque_around_the_reference_or_home():
  task = build(motion="wave", **STILL)
  task.reset()
  knee = task.model.actuator_names.index("left_knee")
  place(task, 0)
  task.action[:, knee] = 1.0
  task.control()
  turned = task.sim.ctrl[0, knee].item()
  task.action.zero_()
  task.control()
  assert turned - task.sim.ctrl[0, knee].item() == pytest.approx(0.75 * 150 / 500)
  home = build(motion="wave", around="home", **STILL)
  home.reset()
  home.control()
  torch.testing.assert_close(home.sim.ctrl.float(), home.home.expand(2, -1))


def test_zero_actions_track_a_wave_for_a_second():
  task = build(motion="wave", starts="first", **STILL)
  task.reset()
  for _ in range(50):
    step = task.step(torch.zeros(2, task.num_actions))
    assert not step["terminated"].any()
  assert (step["metrics", "joint_error"] < 0.05).all()


def test_failures_are_counted_by_environment_alike_on_any_rank():
  whole = build(4, training=True, motion="run", start_memory=0.5, keep_states=0)
  halves = [
    build(2, training=True, offset=offset, motion="run", start_memory=0.5, keep_states=0) for offset in (0, 2)
  ]
  for task in (whole, *halves):
    task.reset()
    for _ in range(40):
      task.step(torch.zeros(task.num_envs, task.num_actions))
  assert whole.failures.any()
  assert whole.failures.equal(torch.cat([half.failures for half in halves]))
  assert whole.frame.equal(torch.cat([half.frame for half in halves]))


def test_an_episode_knows_the_row_at_which_it_started():
  task = build(motion="wave", starts="anywhere")
  task.reset()
  started = task.row().clone()
  for _ in range(3):
    task.step(torch.zeros(2, task.num_actions))
  assert task.first_row.equal(started)
  assert task.row().equal(started + 3)


def test_training_differs_between_robots_and_evaluation_does_not():
  training, evaluation = build(4, training=True, motion="wave"), build(4, motion="wave")
  training.reset()
  evaluation.reset()
  anchor = training.anchor
  assert training.sim.geom_friction[:, 0, 0].std() > 0
  assert training.sim.body_ipos[:, anchor].std(0).min() > 0
  assert 0.005 < training.joint_zero.abs().max() <= 0.01
  assert evaluation.sim.geom_friction[:, 0, 0].std() == 0
  assert not evaluation.joint_zero.any()


@pytest.mark.parametrize(("tilt", "least", "most"), [(0.0, 0.0, 1e-5), (0.05, 0.02, 0.08)])
def test_a_late_and_tilted_imu_moves_the_motions_anchor_too(tilt, least, most):
  task = build(4, training=True, motion="run", imu_latency=0.02, tilt_bias=tilt, keep_states=0)
  task.reset()
  task.step(torch.zeros(4, task.num_actions))
  before = quat.to_matrix(task.places()[1][:, 0].float())
  task.step(torch.zeros(4, task.num_actions))
  true, late = task.measure(), before.mT @ quat.to_matrix(task.library.take_first("xquat", task.row()))
  seen, now = (one["anchor_turn"].unflatten(1, (3, 2)) for one in (task.read(true), true))
  assert least <= (seen - late[:, :, :2]).norm(dim=1).max() <= most
  assert (now - late[:, :, :2]).norm(dim=1).max() > 0.01
  # A tilt keeps the angles between gravity and the motion's axes, but for its square.
  angles = task.read(true)["gravity"].unsqueeze(1) @ seen, -before[:, 2:] @ late[:, :, :2]
  torch.testing.assert_close(*angles, atol=0.01, rtol=0)


def test_another_robot_tracks_a_file(tmp_path):
  write_npz(tmp_path / "clip.npz", own("squat", BIPED))
  task = build(robot=str(BIPED), motion=str(tmp_path / "clip.npz"), starts="first", **STILL)
  assert task.num_actions == 23
  task.reset()
  step = task.step(torch.zeros(2, 23))
  assert step["metrics", "joint_error"].amax() < 0.05
  assert step["obs", "policy"].isfinite().all()


def test_the_policy_sees_as_many_frames_as_it_asks_for():
  task = build(motion="wave", next_frames=3, frame_spacing=4, **STILL)
  task.reset()
  task.frame.fill_(40)
  task.clip.zero_()
  seen = task.observe()["policy"]["next"].reshape(2, 3, 2, -1)
  wave = own("wave")
  expected = np.stack([wave.joint_pos[40 + ahead] for ahead in (1, 5, 9)]) - task.home.numpy()
  np.testing.assert_allclose(seen[0, :, 0], expected, atol=1e-5)
  np.testing.assert_allclose(seen[0, :, 1], 0.1 * wave.velocities()[2][[41, 45, 49]], atol=1e-5)


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"anchor": "tors"}, "env.anchor: .* has no body 'tors', nearest: 'torso'"),
    ({"bodies": ["shin"]}, "env.bodies: .* has no body 'shin', nearest: "),
    (
      {"bodies": ["torso"], "ends": ["left_foot"]},
      "env.ends: .* has no tracked body 'left_foot', nearest: 'tor",
    ),
  ],
)
def test_unknown_bodies_are_told(settings, message):
  with pytest.raises(SettingError, match=message):
    build(motion="wave", **settings)


def test_a_clip_shorter_than_half_a_second_is_tracked_from_its_first_frame(tmp_path):
  short = dataclasses.replace(
    own("wave"), **{name: getattr(own("wave"), name)[:6] for name in ("root_pos", "root_quat", "joint_pos")}
  )
  write_npz(tmp_path / "short.npz", short)
  task = build(motion=str(tmp_path / "short.npz"), **STILL)
  assert task.least_between_truncations == 4
  task.reset()
  assert (task.frame == 0).all()


def test_a_dog_stands_as_a_file_says(tmp_path):
  robot, model = robot_and_model(DOG)
  home = model.key_qpos[model.key_id("home")]
  columns = model.jnt_qposadr[[model.joint_id(joint) for joint in robot.joints]]
  still = [np.tile(part, (60, 1)) for part in (home[:3], home[3:7], home[columns])]
  write_npz(tmp_path / "still.npz", Clip("still", 50.0, *still, robot.joints))
  task = build(robot=str(DOG), motion=str(tmp_path / "still.npz"), starts="first", around="home", **STILL)
  task.reset()
  for _ in range(40):
    step = task.step(torch.zeros(2, 12))
    assert not step["terminated"].any()
  assert len(task.ends) == 4
  assert step["metrics", "body_error"].amax() < 0.06  # its servos sag
