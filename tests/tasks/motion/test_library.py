"""Frames on the device agree with MuJoCo and with each other, and are found by clip and frame."""

import dataclasses

import mujoco
import numpy as np
import pytest
import torch

from tasks.core.errors import SettingError
from tasks.motion.library import Library
from tests.tasks.motion.robots import own, robot_and_model

DT = 0.02


def library(*clips, **settings):
  return Library(robot_and_model()[1], clips or [own("walk"), own("wave")], DT, **settings)


def test_rows_are_those_of_the_clips_and_the_ends_stand_still():
  both = library()
  first = len(own("walk"))
  assert both.names == ("walk", "wave")
  assert both.lengths.tolist() == [first, len(own("wave"))]
  assert len(both) == first + len(own("wave"))
  clip, frame = torch.tensor([0, 0, 1, 1]), torch.tensor([-3, 9999, 2, 9999])
  assert both.row(clip, frame).tolist() == [0, first - 1, first + 2, len(both) - 1]
  assert both.clip_of[both.row(clip, frame)].tolist() == clip.tolist()


def test_bodies_and_their_velocities_are_those_of_mujoco():
  model, frames = robot_and_model()[1], library(own("walk"))
  at = frames.at(torch.tensor([100]))
  data = mujoco.MjData(model.mj)
  data.qpos[:], data.qvel[:] = at.qpos[0], at.qvel[0]
  mujoco.mj_forward(model.mj, data)
  np.testing.assert_allclose(at.xpos[0], data.xpos, atol=1e-5)
  np.testing.assert_allclose(at.xquat[0], data.xquat, atol=1e-5)
  velocity = np.zeros(6)
  for body in range(1, model.nbody):
    mujoco.mj_objectVelocity(model.mj, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
    np.testing.assert_allclose(at.angular[0, body], velocity[:3], atol=2e-5)
    np.testing.assert_allclose(at.linear[0, body], velocity[3:], atol=2e-5)


def test_a_lag_takes_bodies_of_earlier_and_leaves_the_state():
  rows = torch.arange(20, 270)
  now, late = library(own("walk")).at(rows), library(own("walk"), lag=0.005).at(rows)
  assert late.qpos.equal(now.qpos)
  torch.testing.assert_close(late.xpos, now.xpos - 0.005 * now.linear, atol=3e-4, rtol=0)


def test_chosen_bodies_keep_their_order():
  rows = torch.arange(4)
  every, two = library(own("wave")).at(rows), library(own("wave"), bodies=[6, 1]).at(rows)
  assert two.xpos.equal(every.xpos[:, [6, 1]])
  assert two.angular.equal(every.angular[:, [6, 1]])
  assert two.qpos.equal(every.qpos)


def test_the_first_body_can_be_taken_alone():
  frames, rows = library(own("wave"), bodies=[6, 1]), torch.tensor([3, 0, 17])
  for name in ("xpos", "xquat"):
    assert frames.take_first(name, rows).equal(frames.take(name, rows)[:, 0])


def test_clips_are_drawn_by_their_weights_and_leave_a_margin():
  walk, wave = (
    dataclasses.replace(own(name), weight=weight) for name, weight in (("walk", 3.0), ("wave", 1.0))
  )
  both = library(walk, wave)
  uniform = torch.rand(20_000, 2, generator=torch.Generator().manual_seed(0))
  clip, frame = both.draw(uniform, margin=50)
  assert (clip == 0).float().mean() == pytest.approx(0.75, abs=0.01)
  assert (frame < both.lengths[clip] - 50).all()
  assert frame.amax() > len(walk) - 60
  assert both.draw(torch.tensor([[0.9999999, 0.9999999]]), 9999)[1].tolist() == [0]


def test_a_clip_of_one_step_is_refused():
  clip = own("wave")
  short = dataclasses.replace(
    clip, **{name: getattr(clip, name)[:2] for name in ("root_pos", "root_quat", "joint_pos")}
  )
  with pytest.raises(SettingError, match=r"wave: it lasts 0.02 s, less than two control steps"):
    library(short)
