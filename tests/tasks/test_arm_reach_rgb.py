"""Arm reach in colour by hand: where the ball is in the images, its colours and lights."""

import pytest
import torch

from tests.tasks.project import project

PLAIN = {"change_color": 0.0, "change_light": 0.0, "tilt_light": 0.0}


@pytest.mark.parametrize("camera", ["front", "side"])
def test_the_cameras_see_the_ball_at_the_goal(make_task, camera):
  task = make_task("arm_reach_rgb", num_envs=16, camera_size=64, **PLAIN)
  obs = task.reset()
  assert obs[camera].shape == (16, 64, 64, 3)
  torch.testing.assert_close(task.sim.xpos[:, task.model.body_id("goal")], task.goal_position)
  red, blue = (obs[camera][..., channel].float() for channel in (0, 2))
  seen = 0
  for env in range(16):
    row, column, _ = project(task, env, camera, task.goal_position[env].cpu(), 64)
    is_ball = red[env, int(row), int(column)] > 2 * blue[env, int(row), int(column)]
    seen += int(is_ball)
  assert seen >= 12  # the arm may stand before it


def test_the_ball_goes_where_a_person_puts_it(make_task):
  task = make_task("arm_reach_rgb", num_envs=2)
  task.reset()
  task.commands.values.copy_(torch.tensor([0.4, 0.1, 0.2]).expand(2, 3))
  for _ in range(2):
    task.step(torch.zeros(2, task.num_actions))
  assert task.goal_position[0].tolist() == pytest.approx([0.4, 0.1, 0.2])
  assert task.sim.mocap_pos[1, 0].tolist() == pytest.approx([0.4, 0.1, 0.2])


def test_each_environment_has_colours_and_lights_of_its_own(make_task):
  task, plain = make_task("arm_reach_rgb", num_envs=64), make_task("arm_reach_rgb", num_envs=2, **PLAIN)
  front, side = (view.camera for view in task.views.values())
  usual = plain.views["front"].camera
  for name in ("colors", "diffuse", "lights"):
    assert getattr(front, name).equal(getattr(side, name))
    assert getattr(usual, name)[0].equal(getattr(usual, name)[1])
    assert not getattr(front, name)[0].equal(getattr(front, name)[1])
  change = front.colors - usual.colors[0]
  assert 0.18 < change.abs().max() <= 0.2001
  assert 0 <= front.colors.min() <= front.colors.max() <= 1
  ball = front.colors[:, task.model.geom_id("goal")]
  assert (ball[:, 0] > 2 * ball[:, 1:].amax(1)).all()  # it stays the reddest of all
  brightness = (front.diffuse / usual.diffuse[0].clamp(min=1e-6))[..., 0]
  assert 0.6 <= brightness.min() < 0.7
  assert 1.3 < brightness.max() <= 1.4
  assert (front.lights[:, 0, 5] == usual.lights[0, 0, 5]).all()
  assert 0.4 < front.lights[:, 0, 3:5].abs().max() <= 0.5
