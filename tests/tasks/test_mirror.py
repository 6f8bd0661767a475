"""Mirror images: robots in mirrored states move as the mirror of their task shows."""

import pytest
import torch

from tasks.shared.quat import AXIAL, POLAR


def whole_state(*signs):
  """Return how to find qpos and qvel, with the signs of their mirror images."""
  return lambda task: zip((task.sim.qpos, task.sim.qvel), signs, strict=True)


POSE, MOTION = [*POLAR, 1, -1, 1, -1], [*POLAR, *AXIAL]  # of a trunk
STARTS = {  # settings; what is mirrored at the start with its signs; size of the actions, bound of rounding
  "cartpole": ({}, [whole_state([-1], [-1])], 0.1, 1e-5),
  "cartpole, blind": ({"see_velocity": False}, [whole_state([-1], [-1])], 0.1, 1e-5),
  "ball_balance": ({}, [lambda task: [(view, POLAR) for view in task.motion()]], 1.0, 1e-3),
  "quadcopter": ({}, [whole_state(POSE, MOTION), lambda task: [(task.target, POLAR)]], 1.0, 1e-4),
}


@pytest.mark.parametrize("case", STARTS)
def test_a_mirrored_start_leads_to_mirrored_steps(case, make_task, actions):
  settings, parts, size, bound = STARTS[case]
  task, twin = (make_task(case.partition(",")[0], **settings) for _ in range(2))
  (index, sign), (action_index, action_sign) = task.mirror["policy"], task.mirror["action"]
  task.reset(), twin.reset()
  for views in parts:
    for (ours, signs), (theirs, _) in zip(views(task), views(twin), strict=True):
      theirs.copy_(torch.tensor(signs) * ours)
  for action in size * actions(task, 20):
    step, mirrored = task.step(action), twin.step(action_sign * action[:, action_index])
    expected = sign * step["final_obs", "policy"][:, index]
    torch.testing.assert_close(mirrored["final_obs", "policy"], expected, rtol=bound, atol=bound)
    torch.testing.assert_close(mirrored["reward"], step["reward"], rtol=bound, atol=bound)


UNEVEN = 0.02  # bound of the mean error of robots that are not quite symmetric


@pytest.mark.parametrize(
  ("name", "settings", "phase", "bound"),
  [
    ("ant", {}, 0, 1e-3),
    ("humanoid", {}, 0, 1e-3),
    ("quadruped", {"step_seconds": 0.8}, 20, UNEVEN),  # its trunk weighs 2 mm from the middle
    ("biped", {"step_seconds": 0.8}, 20, UNEVEN),  # half a turn of the clock later
  ],
)
def test_a_mirrored_robot_makes_mirrored_steps(name, settings, phase, bound, make_task, actions):
  task = make_task(name, num_envs=2, **settings)
  (index, sign), (action_index, action_sign) = task.mirror["policy"], task.mirror["action"]
  task.reset()
  task.episode_steps[1] = phase
  if task.commands is not None:
    task.command[1] = task.command[0] * torch.tensor([1, -1, -1])
  touched = False
  for action in 0.5 * actions(task, 20):
    for state, trunk, joints in (
      (task.sim.qpos, POSE, task.angles),
      (task.sim.qvel, MOTION, task.speeds),
    ):
      state[1, : len(trunk)] = torch.tensor(trunk) * state[0, : len(trunk)]
      state[1, joints] = action_sign * state[0, joints][action_index]
    action[1] = action_sign * action[0, action_index]
    step = task.step(action)
    touched |= bool((task.sim.contact_count > 0).any())
    seen, mirrored = step["final_obs", "policy"]
    expected = sign * seen[index]
    error, wanted = (mirrored - expected).abs(), expected.abs()
    assert error.mean() < bound * wanted.mean()
    assert bound == UNEVEN or (error <= bound * (1 + wanted)).all()
  torch.testing.assert_close(*step["reward"], rtol=0.02, atol=0.02)
  assert touched
