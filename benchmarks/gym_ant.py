"""The Ant as a Gymnasium environment over MuJoCo C: what tasks/ant.py computes, for one robot in NumPy."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box
from numpy.typing import NDArray

from tasks import ant
from tasks.base import ASSETS

Array = NDArray[np.float64]
JOINTS = [f"{leg}_{joint}" for leg in ant.LEGS for joint in ("hip", "ankle")]
FEET = [f"{leg}_foot" for leg in ant.LEGS]
OBSERVATION = Box(-np.inf, np.inf, (60,), np.float64)


class Ant(MujocoEnv):
  """One Ant with the observation, reward and termination of tasks/ant.py."""

  metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 60}  # noqa: RUF012

  def __init__(self, **options: Any) -> None:
    self.config = ant.Config()
    path = str(ASSETS / "ant" / "robot.xml")
    super().__init__(path, self.config.substeps, OBSERVATION, **options)
    model = self.model
    self.angles = [model.joint(name).qposadr[0] for name in JOINTS]
    self.speeds = [model.joint(name).dofadr[0] for name in JOINTS]
    self.feet = [model.body(name).id for name in FEET]
    self.low, self.high = model.jnt_range[[model.joint(name).id for name in JOINTS]].T
    self.target = np.array([self.config.target_distance, 0.0])
    self.action = np.zeros(8)

  def step(self, action: NDArray[np.float32]) -> tuple[Array, np.float64, bool, bool, dict[str, np.float64]]:
    """Apply motor torques for one control step."""
    self.action = np.clip(action, -1.0, 1.0).astype(np.float64)
    before = np.linalg.norm(self.target - self.data.qpos[:2])
    self.do_simulation(self.action, self.frame_skip)
    fallen = bool(self.data.qpos[2] < self.config.fall_height)
    progress = np.float64(before - np.linalg.norm(self.target - self.data.qpos[:2])) / self.dt
    return self.observe(), self.reward(progress, fallen), fallen, False, {}

  def reset_model(self) -> Array:
    """Start in the home pose, its joints moved a little."""
    qpos, qvel, config = self.init_qpos.copy(), np.zeros(self.model.nv), self.config
    offset = self.np_random.uniform(-config.start_angle, config.start_angle, 8)
    qpos[self.angles] = np.clip(qpos[self.angles] + offset, self.low, self.high)
    qvel[self.speeds] = self.np_random.uniform(-config.start_velocity, config.start_velocity, 8)
    self.set_state(qpos, qvel)
    self.action = np.zeros(8)
    return self.observe()

  def reward(self, progress: np.float64, fallen: bool) -> np.float64:
    """Pay for speed towards the target [m/s], posture and heading; charge for effort."""
    c = self.config
    if fallen:
      return np.float64(c.reward_fallen)
    _, up, heading, _ = self.attitude()
    effort = np.abs(self.action * self.data.qvel[self.speeds]).sum()
    return np.float64(
      c.reward_progress * progress
      + c.reward_alive
      + c.reward_upright * (up > 0.93)
      + c.reward_heading * min(heading / 0.8, 1.0)
      + c.reward_action * np.square(self.action).sum()
      + c.reward_energy * effort
      + c.reward_joint_limit * (self.joint_fraction() > 0.99).sum()
    )

  def observe(self) -> Array:
    """Return the 60 numbers of tasks/ant.py, in its order."""
    rotation, up, heading, bearing = self.attitude()
    qpos, qvel = self.data.qpos, self.data.qvel
    yaw, roll = np.arctan2(rotation[1, 0], rotation[0, 0]), np.arctan2(rotation[2, 1], rotation[2, 2])
    blocks = (
      qpos[2:3],
      rotation.T @ qvel[:3],
      qvel[3:6],
      (yaw, roll, bearing, up, heading),
      self.joint_fraction(),
      0.2 * qvel[self.speeds],
      np.clip(0.1 * self.data.cfrc_ext[self.feet].ravel(), -10.0, 10.0),
      self.action,
    )
    return np.concatenate(blocks)

  def attitude(self) -> tuple[Array, float, float, float]:
    """Return the torso's rotation [3, 3], its up and heading cosines, and the target's bearing [rad]."""
    rotation = self.data.body("torso").xmat.reshape(3, 3)
    x, y = (self.target - self.data.qpos[:2]) / np.linalg.norm(self.target - self.data.qpos[:2])
    ahead, left = rotation[0, 0], rotation[1, 0]
    heading = ahead * x + left * y
    return rotation, rotation[2, 2], heading, float(np.arctan2(ahead * y - left * x, heading))

  def joint_fraction(self) -> Array:
    """Return where each joint is in its range [8]: -1 at the lower limit, 1 at the upper."""
    return (2 * self.data.qpos[self.angles] - self.high - self.low) / (self.high - self.low)


gymnasium.register("benchmarks/Ant-v0", entry_point=Ant, max_episode_steps=ant.Config().episode_steps)
