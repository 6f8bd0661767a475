"""The quadruped: it stands, and its parts have the names that the task says."""

import torch


def test_its_joints_are_in_the_order_of_its_actuators(make_task):
  task = make_task("quadruped")
  assert tuple(task.model.actuator_names) == task.joints
  assert task.home[7:].equal(task.stance)
  assert task.obs_dims == {"policy": 47, "critic": 61}


def test_it_stands_for_two_seconds_at_home(make_task):
  task = make_task("quadruped", start_angle=0.0, start_velocity=0.0, command_standing=1.0)
  task.reset()
  for _ in range(100):
    step = task.step(torch.zeros(8, 12))
    assert not step["terminated"].any()
  assert task.contacts().all()
  assert (step["reward"] > 1.3).all()  # of 1.5
  assert (step["metrics", "velocity_error"] < 0.01).all()
  assert step["metrics", "velocity_error"].all()  # measured
