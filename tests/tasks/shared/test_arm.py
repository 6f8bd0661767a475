"""Common parts of arm tasks: controls by hand and against MuJoCo, the start, the observation."""

import mujoco
import numpy as np
import pytest
import torch

import tasks
from tests.tasks import in_mujoco

pytestmark = pytest.mark.xdist_group("arm")  # one process builds the kernels


@pytest.fixture
def reach(make_task):
  """Return a function that makes a task without a gripper, its environments in random poses at rest."""

  def make(control, **fields):
    task = make_task("arm_reach", num_envs=4, control=control, **fields)
    task.reset()
    generator = torch.Generator().manual_seed(0)
    share = torch.rand(4, 7, generator=generator)
    task.sim.qpos[:, task.angles] = torch.lerp(task.low, task.high, 0.2 + 0.6 * share)
    task.sim.forward()
    return task

  return make


def accelerations(task):
  """Return what the grasp points accelerate by under the present controls [4, 6], by MuJoCo."""
  model = task.model.mj
  data = mujoco.MjData(model)
  found = np.zeros((4, 6))
  for env in range(4):
    data.qpos[:], data.ctrl[:] = task.sim.qpos[env].numpy(), task.sim.ctrl[env].numpy()
    mujoco.mj_forward(model, data)
    jacobian = np.zeros((6, model.nv))
    mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], task.point)
    found[env] = jacobian @ data.qacc
  return found


@pytest.mark.parametrize(
  ("name", "control", "count"),
  [("arm_reach", "joint", 7), ("arm_reach", "osc", 6), ("cube_lift", "joint", 8), ("cube_lift", "osc", 7)],
)
def test_actions_are_those_of_the_control(name, control, count):
  task = in_mujoco.build(tasks.load(name), control=control)
  assert task.num_actions == count
  assert task.model.nu == 8


def test_the_jacobian_is_that_of_mujoco(reach):
  task = reach("osc")
  data = mujoco.MjData(task.model.mj)
  for env, ours in enumerate(task.jacobian().permute(2, 0, 1).numpy()):
    data.qpos[:] = task.sim.qpos[env].numpy()
    mujoco.mj_forward(task.model.mj, data)
    theirs = np.zeros((6, task.model.nv))
    mujoco.mj_jacSite(task.model.mj, data, theirs[:3], theirs[3:], task.point)
    np.testing.assert_allclose(ours, theirs[:, :7], atol=1e-5)


def test_the_grasp_point_accelerates_as_the_action_says(reach):
  """From rest, as stiffness times displacement. Softness takes some, and motors have their limits."""
  task = reach("osc", osc_posture=0.0)
  task.action.copy_(0.2 * torch.eye(6)[[0, 2, 3, 5]])
  task.sim.ctrl[:, task.drives] = task.torques().T
  wanted = 150.0 * 0.2 * np.array([0.1] * 3 + [0.5] * 3) * np.eye(6)[[0, 2, 3, 5]]
  np.testing.assert_allclose(accelerations(task), wanted, atol=0.05 * wanted.max())


def test_no_action_holds_the_arm(reach):
  for control in ("joint", "osc"):
    task = reach(control, start_angle=0.0)
    task.reset()
    start = task.sim.site_xpos[:, task.point].clone()
    for _ in range(25):
      task.step(torch.zeros(4, task.num_actions))
    torch.testing.assert_close(task.sim.site_xpos[:, task.point], start, atol=2e-3, rtol=0.0)


def test_operational_space_moves_along_the_axis_alone(make_task):
  task = make_task("arm_reach", num_envs=1, control="osc", start_angle=0.0)
  task.reset()
  start, rotation = task.sim.site_xpos[0, task.point].clone(), task.sim.xmat[0, task.hand].clone()
  for _ in range(10):
    task.step(torch.tensor([[0.0, 0.0, 0.5, 0.0, 0.0, 0.0]]))
  moved = task.sim.site_xpos[0, task.point] - start
  assert moved[2] > 0.08
  assert moved[:2].abs().max() < 0.01
  torch.testing.assert_close(task.sim.xmat[0, task.hand], rotation, atol=0.05, rtol=0.0)


def test_torques_are_held_for_so_many_substeps(reach, monkeypatch):
  task = reach("osc", substeps=6, osc_substeps=2)
  steps = []
  monkeypatch.setattr(task.sim, "step", lambda substeps, _: steps.append(substeps))
  task.simulate()
  assert steps == [2, 2, 2]
  with pytest.raises(ValueError, match="osc_substeps=4 does not divide substeps=6"):
    reach("osc", substeps=6)


def test_joint_targets_are_displacements_within_the_ranges(reach):
  task = reach("joint", joint_step=0.3)
  task.sim.qpos[0, 0] = task.high[0] - 0.1
  angles = task.sim.qpos[:, task.angles].clone()
  task.action.fill_(0.5)
  task.action[1] = 0.0
  task.control()
  targets = task.sim.ctrl[:, task.drives]
  assert targets[0, 0] == task.high[0]
  torch.testing.assert_close(targets[0, 1:], angles[0, 1:] + 0.15)
  assert targets[1].equal(angles[1])


def test_the_last_action_opens_the_gripper(make_task, reach):
  task = make_task("cube_lift", num_envs=3)
  task.action[:, -1] = torch.tensor([-1.0, 0.0, 1.0])
  task.control()
  torch.testing.assert_close(task.sim.ctrl[:, task.gripper], torch.tensor([0.0, 0.04, 0.08]))
  resting = reach("joint")
  resting.control()
  torch.testing.assert_close(resting.sim.ctrl[:, resting.gripper], torch.full((4,), 0.07))


def test_episodes_start_at_rest_near_home(make_task):
  task = make_task("arm_reach", num_envs=64, start_angle=0.2)
  task.reset()
  away = (task.sim.qpos - task.home)[:, task.angles].abs()
  assert 0.15 < away.max() <= 0.2
  assert task.sim.qpos[:, task.fingers].eq(task.home[task.fingers]).all()
  assert task.sim.qvel.eq(0.0).all()


def test_the_policy_sees_the_hand_as_mujoco_does(reach):
  task = reach("joint")
  data = mujoco.MjData(task.model.mj)
  data.qpos[:] = task.sim.qpos[0].numpy()
  mujoco.mj_forward(task.model.mj, data)
  blocks = {name: block[0].numpy() for name, block in task.observe_arm().items()}
  np.testing.assert_allclose(blocks["angles"], data.qpos[:7], atol=1e-6)
  np.testing.assert_allclose(blocks["grasp_position"], data.site("grasp").xpos, atol=1e-5)
  hand = data.body("hand").xmat.reshape(3, 3)
  np.testing.assert_allclose(blocks["grasp_axes"], hand[:, 1:], atol=1e-5)
  assert blocks["opening"] == pytest.approx(0.07)
  tips = [data.body(f"{side}_finger").xpos + 0.045 * hand[:, 2] for side in ("left", "right")]
  np.testing.assert_allclose(task.grip_points()[0].numpy(), [data.site("grasp").xpos, *tips], atol=1e-5)
