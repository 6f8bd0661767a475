"""Quadruped rough depth by hand: what the camera sees against mj_ray, and how often."""

import math

import mujoco
import numpy as np
import torch

SIDE = 32  # pixels


def rays(task, env):
  """Return the depths [SIDE, SIDE] [m] along the optical axis of the camera, by MuJoCo's rays."""
  mj = task.model.mj
  data = mujoco.MjData(mj)
  data.qpos[:] = task.sim.qpos[env].double().cpu().numpy()
  mujoco.mj_kinematics(mj, data)
  mujoco.mj_camlight(mj, data)
  index = mj.camera("front").id
  half = math.tan(math.radians(mj.cam_fovy[index]) / 2)
  ends = half * (2 * (np.arange(SIDE) + 0.5) / SIDE - 1)
  turn, start, hit = data.cam_xmat[index].reshape(3, 3), data.cam_xpos[index], np.zeros(1, np.int32)
  depths = np.empty((SIDE, SIDE))
  for row, column in np.ndindex(SIDE, SIDE):
    direction = np.array([ends[column], -ends[row], -1.0])
    length = np.linalg.norm(direction)
    found = mujoco.mj_ray(mj, data, start, turn @ direction / length, None, 1, -1, hit)
    depths[row, column] = found / length if found >= 0 else np.inf
  return depths.clip(0.05, 2.0)


def test_the_camera_sees_the_ground_ahead(make_task):
  task = make_task("quadruped_rough_depth", num_envs=14, camera_width=SIDE, camera_height=SIDE)
  depth = task.reset()["depth"][..., 0].float().cpu().numpy()
  for env in range(0, 14, 3):
    expected = rays(task, env)
    off = np.abs(depth[env] - expected)
    assert np.mean(off < 2e-3 * expected) > 0.95  # but for silhouettes
    assert depth[env, -1].mean() < depth[env, 0].mean()  # below is nearer than ahead
  assert depth.std(0).max() > 0.05  # grounds differ


def test_an_image_stays_for_five_steps(make_task):
  task = make_task("quadruped_rough_depth", num_envs=2)
  image = task.reset()["depth"].clone()
  action, kept = torch.full((2, 12), 0.2), []
  for _ in range(11):
    seen = task.step(action)["obs", "depth"]
    kept.append(seen.equal(image))
    image = seen.clone()
  assert kept == [True] * 4 + [False] + [True] * 4 + [False] + [True]


def test_a_policy_may_have_both(make_task):
  task = make_task("quadruped_rough_depth", blind=False)
  assert task.obs_dims == {"policy": 124, "critic": 138}
  assert "teacher" not in task.obs_names
