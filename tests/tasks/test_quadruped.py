"""The quadruped: it stands, its parts have the names that the task says, and its mirror image moves alike."""

import torch


def test_its_joints_are_in_the_order_of_its_actuators(make_task):
  task = make_task("quadruped")
  assert tuple(task.model.actuator_names) == task.joints
  assert task.home[7:].equal(task.stance)
  assert task.obs_dims == {"policy": 45, "critic": 59}


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


def test_a_mirrored_quadruped_moves_as_the_mirror_shows(make_task, actions):
  """But for a trunk whose centre of mass is 2 mm from the middle."""
  task = make_task("quadruped", num_envs=2)
  (index, sign), (action_index, action_sign) = task.mirror["policy"], task.mirror["action"]
  task.reset()
  task.command[1] = task.command[0] * torch.tensor([1, -1, -1])
  for action in 0.5 * actions(task, 20):
    for state, trunk, joints in (
      (task.sim.qpos, [1, -1, 1, 1, -1, 1, -1], task.angles),
      (task.sim.qvel, [1, -1, 1, -1, 1, -1], task.speeds),
    ):
      state[1, : len(trunk)] = torch.tensor(trunk) * state[0, : len(trunk)]
      state[1, joints] = action_sign * state[0, joints][action_index]
    action[1] = action_sign * action[0, action_index]
    seen, mirrored = task.step(action)["final_obs", "policy"]
    expected = sign * seen[index]
    assert (mirrored - expected).abs().mean() < 0.02 * expected.abs().mean()
  assert task.contacts().any()
