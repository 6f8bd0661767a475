"""The reference walk is one that a body can do: feet that stand do not slide, and the ground can carry it."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import physics
from tasks.motion import walk
from tasks.shared import runner

SERVOS = Path(__file__).parents[3] / "assets" / "humanoid" / "servos.xml"
FRAMES = 100
BALL = 0.027  # radius of a foot's heel and toe [m]


@pytest.fixture(scope="module")
def reference():
  return walk.Walk(physics.load_model(SERVOS), speed=0.8, period=1.0)


@pytest.fixture(scope="module")
def times(reference):
  return torch.arange(FRAMES, dtype=torch.float64) / FRAMES * reference.period


@pytest.fixture(scope="module")
def data(reference, times):
  """MuJoCo's data in each frame of a cycle, with the forces that the motion takes (`qfrc_inverse`)."""
  mj, step = reference.model.mj, 1e-4
  mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
  qacc = (reference.qvel(times + step) - reference.qvel(times - step)) / (2 * step)
  frames = []
  for qpos, qvel, acc in zip(reference.qpos(times), reference.qvel(times), qacc, strict=True):
    frame = mujoco.MjData(mj)
    frame.qpos[:], frame.qvel[:], frame.qacc[:] = qpos, qvel, acc
    mujoco.mj_inverse(mj, frame)
    frames.append(frame)
  return frames


def standing(side, time, period):
  return (time / period + (0.0 if side == "left" else 0.5)) % 1.0 < walk.STANCE


def heights(frame, side):
  return [frame.site(f"{side}_{part}").xpos[2] - BALL for part in ("heel", "toe")]


@pytest.mark.parametrize("side", ["left", "right"])
def test_feet_are_on_the_ground_in_their_stance_and_above_it_otherwise(side, reference, times, data):
  for time, frame in zip(times, data, strict=True):
    lowest = min(heights(frame, side))
    if standing(side, time, reference.period):
      assert lowest == pytest.approx(0.0, abs=1e-9)
    else:
      assert lowest > 0.0
  assert max(min(heights(frame, side)) for frame in data) > 0.03


@pytest.mark.parametrize("side", ["left", "right"])
def test_feet_that_stand_do_not_slide(side, reference, times, data):
  """What touches the ground is at rest: the bottom of heel or toe, whichever is lower."""
  velocity = np.zeros(6)
  for time, frame in zip(times, data, strict=True):
    if standing(side, time, reference.period):
      part = ("heel", "toe")[int(np.argmin(heights(frame, side)))]
      site = reference.model.mj.site(f"{side}_{part}").id
      mujoco.mj_objectVelocity(reference.model.mj, frame, mujoco.mjtObj.mjOBJ_SITE, site, velocity, 0)
      bottom = velocity[3:] + np.cross(velocity[:3], [0.0, 0.0, -BALL])
      assert np.abs(bottom).max() < 1e-5


def test_joints_stay_within_their_limits_and_move_at_a_walkers_speeds(reference, times):
  low, high = reference.model.jnt_range[1:].T
  angles = reference.qpos(times).numpy()[:, 7:]
  assert (low < angles).all()
  assert (angles < high).all()
  assert reference.qvel(times).abs().max() < 8.0
  knee = angles[:, list(reference.model.actuator_names).index("left_knee")]
  assert 0.2 < knee.min() < 0.6
  assert 1.0 < knee.max() < 1.4


def test_speeds_are_those_of_the_angles_and_do_not_jump(reference, times):
  step = 1e-4
  before, after = reference.qpos(times - step), reference.qpos(times + step)
  change = (after - before) / (2 * step)
  torch.testing.assert_close(reference.qvel(times)[:, 6:], change[:, 7:], atol=1e-3, rtol=1e-3)
  assert (reference.qvel(times + step) - reference.qvel(times - step)).abs().max() < 0.1


def test_a_cycle_later_it_is_a_stride_further_and_half_a_cycle_later_its_mirror_image(reference, times):
  qpos = reference.qpos(times)
  later, half = reference.qpos(times + reference.period), reference.qpos(times + reference.period / 2)
  qpos[:, 0] += reference.stride
  torch.testing.assert_close(later, qpos)
  index, signs = runner.exchange(reference.model.actuator_names, turning=("abdomen_z", "abdomen_x"))
  torch.testing.assert_close(half[:, 7:], qpos[:, 7:][:, index] * torch.tensor(signs))
  torch.testing.assert_close(half[:, 1:3], qpos[:, 1:3] * torch.tensor([-1.0, 1.0], dtype=torch.float64))


def test_the_ground_can_carry_it(reference, times, data):
  """It pushes, and where the moments ask for: near the feet that stand (the zero moment point)."""
  weight = 9.81 * reference.model.body_mass.sum()
  outside = []
  for time, frame in zip(times, data, strict=True):
    force, moment = frame.qfrc_inverse[:3], frame.qfrc_inverse[3:6]  # on the torso, which is upright
    assert 0.5 * weight < force[2] < 1.5 * weight
    assert np.abs(force[:2]).max() < 0.6 * force[2]  # friction
    moment = moment + np.cross(frame.qpos[:3], force)
    point = np.array([-moment[1], moment[0]]) / force[2]
    sides = [side for side in ("left", "right") if standing(side, time, reference.period)]
    ends = np.array([frame.site(f"{side}_{end}").xpos[:2] for side in sides for end in ("heel", "toe")])
    margin = np.array([BALL, 0.067])  # of a foot about the line from heel to toe
    low, high = ends.min(0) - margin, ends.max(0) + margin
    outside.append(np.maximum(low - point, point - high).max())
  assert np.mean(np.maximum(outside, 0.0)) < 0.03
  assert max(outside) < 0.12


def test_course_passes_through_its_keys_and_rests_there():
  keys = ((0.0, -1.0), (0.4, 2.0), (1.0, 0.5))
  phase = torch.tensor([0.0, 0.4, 1.0, 0.2], dtype=torch.float64)
  assert walk.course(keys, phase).tolist() == pytest.approx([-1.0, 2.0, 0.5, 0.5])
  near = walk.course(keys, phase + 1e-4) - walk.course(keys, phase - 1e-4)
  assert near[:3].abs().max() < 1e-9
  assert near[3] > 1e-4


def test_strides_have_a_limit(reference, times):
  longest = walk.Walk(reference.model, speed=walk.LONGEST, period=1.0)
  assert longest.qpos(times).isfinite().all()
  with pytest.raises(
    ValueError, match=r"1 m/s with a cycle of 1.5 s has strides of 1.50 m, legs reach 0.95 m"
  ):
    walk.Walk(reference.model, speed=1.0, period=1.5)
