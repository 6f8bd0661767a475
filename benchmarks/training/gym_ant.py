"""Ant as a Gymnasium environment in MuJoCo C: the computations of tasks/ant.py for one robot in NumPy."""

from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from tasks import ant

Array = NDArray[np.float32]
JOINTS = [f"{leg}_{joint}" for leg in ant.LEGS for joint in ("hip", "ankle")]
FEET = [f"{leg}_foot" for leg in ant.LEGS]


class Ant(gymnasium.Env[Array, Array]):
  """Environment of one Ant with the observation, reward and termination of tasks/ant.py."""

  observation_space = Box(-np.inf, np.inf, (60,))
  action_space = Box(-1.0, 1.0, (8,))

  def __init__(self, render_mode: None = None) -> None:
    self.render_mode = render_mode  # rendering is not supported
    self.config = ant.Config()
    self.model = model = mujoco.MjModel.from_xml_path(str(ant.Task.robot))
    self.data = mujoco.MjData(model)
    self.dt = self.config.substeps * model.opt.timestep
    self.angles = [model.joint(name).qposadr[0] for name in JOINTS]
    self.speeds = [model.joint(name).dofadr[0] for name in JOINTS]
    self.feet = [model.body(name).id for name in FEET]
    self.low, self.high = model.jnt_range[[model.joint(name).id for name in JOINTS]].T
    self.target = np.array([self.config.target_distance, 0.0])

  def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict]:
    """Start in the home pose with random joint offsets."""
    super().reset(seed=seed, options=options)
    mujoco.mj_resetData(self.model, self.data)
    offset, speed = self.config.start_angle, self.config.start_velocity
    angles = self.data.qpos[self.angles] + self.np_random.uniform(-offset, offset, 8)
    self.data.qpos[self.angles] = np.clip(angles, self.low, self.high)
    self.data.qvel[self.speeds] = self.np_random.uniform(-speed, speed, 8)
    mujoco.mj_forward(self.model, self.data)
    mujoco.mj_rnePostConstraint(self.model, self.data)
    return self.observe(), {}

  def step(self, action: Array) -> tuple[Array, float, bool, bool, dict]:
    """Apply motor torques [8] for one control step."""
    before = np.hypot(*(self.target - self.data.qpos[:2]))
    self.data.ctrl[:] = np.clip(action, -1.0, 1.0)
    mujoco.mj_step(self.model, self.data, self.config.substeps)
    mujoco.mj_rnePostConstraint(self.model, self.data)
    progress = (before - np.hypot(*(self.target - self.data.qpos[:2]))) / self.dt
    fallen = bool(self.data.qpos[2] < self.config.fall_height)
    return self.observe(), self.config.reward_fallen if fallen else self.reward(progress), fallen, False, {}

  def reward(self, progress: float) -> float:
    """Return the reward of the speed towards the target [m/s], posture, heading and effort."""
    c, ctrl = self.config, self.data.ctrl
    _, up, heading, _ = self.attitude()
    return float(
      c.reward_progress * progress
      + c.reward_alive
      + c.reward_upright * (up > 0.93)
      + c.reward_heading * min(heading / 0.8, 1.0)
      + c.reward_action * ctrl @ ctrl
      + c.reward_energy * np.abs(ctrl * self.data.qvel[self.speeds]).sum()
      + c.reward_joint_limit * (self.joint_fraction() > 0.99).sum()
    )

  def observe(self) -> Array:
    """Return the observation of tasks/ant.py [60]."""
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
      self.data.ctrl,
    )
    return np.concatenate(blocks).astype(np.float32)

  def attitude(self) -> tuple[NDArray[np.float64], float, float, float]:
    """Return the torso rotation [3, 3], its up and heading cosines, and the target bearing [rad]."""
    rotation = np.empty((3, 3))
    mujoco.mju_quat2Mat(rotation.reshape(9), self.data.qpos[3:7])
    x, y = self.target - self.data.qpos[:2]
    ahead, left = rotation[0, 0], rotation[1, 0]
    along, across = ahead * x + left * y, ahead * y - left * x
    return rotation, rotation[2, 2], along / np.hypot(x, y), np.arctan2(across, along)

  def joint_fraction(self) -> NDArray[np.float64]:
    """Return joint angles scaled to their ranges [8]: -1 at the lower limit, 1 at the upper."""
    return (2 * self.data.qpos[self.angles] - self.high - self.low) / (self.high - self.low)


gymnasium.register(
  "benchmarks/Ant-v0",
  entry_point="benchmarks.training.gym_ant:Ant",
  max_episode_steps=ant.Config().episode_steps,
)
