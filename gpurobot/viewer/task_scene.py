"""MuJoCo scene of a task for rendering, with goals, commands, light, ground and sky."""

import math
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from gpurobot.deploy.trained import Trained
from gpurobot.settings.config import ConfigError
from gpurobot.viewer.framing import ASPECT, corners, find_robot, subject, view
from gpurobot.viewer.marks import Arrow
from gpurobot.viewer.scenery import dressed
from tasks.base import Goal, Task

LIGHT_DISTANCE = 10.0  # of a light from far away, from the robot [m]
ABOVE = (0.15, 0.1)  # heights of the arrows of commanded and actual velocity above the robot [m]
LENGTH = 0.6  # of an arrow for 1 m/s [m]
SHADOWED = 3.0  # half width of the area with shadows, as a multiple of the robot's size
STATE = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")


class TaskScene:
  """MuJoCo `model` and `data` of a task's scene, which show one environment at a time."""

  arrows: Sequence[Arrow]  # the commanded and the actual velocity of the robot shown, if it is commanded

  def __init__(self, task: Task, marked: bool = True) -> None:
    """Compile the scene; add light, ground and sky if they are missing; `marked`: with goals and arrows."""
    self.task, self.marked = task, marked
    self.model = dressed(task.scene(task.config), [goal.frame for goal in self._goals()])
    self.data = mujoco.MjData(self.model)
    self.robot = find_robot(self.model)
    self._far_lights = self.model.light_type == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    mujoco.mj_kinematics(self.model, self.data)
    points = corners(self.model, self.data, subject(self.model, self.robot))
    self._height = points[:, 2].max() - self.data.xpos[self.robot.body, 2]  # of the robot above its root [m]
    self._focus_shadows(points)

  def show(self, index: int) -> None:
    """Copy the state of one environment to `data` and compute its kinematics."""
    for name in STATE:
      state = getattr(self.task.sim, name)[index].cpu().numpy()
      getattr(self.data, name)[: len(state)] = state
    for place, goal in enumerate(self._goals(), self.task.model.nmocap):
      self.data.mocap_pos[place] = goal.position[index, :3].cpu().numpy()
      if goal.rotation is not None:
        turn = goal.rotation[index].flatten().double().cpu().numpy()
        mujoco.mju_mat2Quat(self.data.mocap_quat[place], turn)
    if "geom_size" in self.task.model.varied:
      sizes = self.task.sim.geom_size[index].cpu().numpy()
      self.model.geom_size[: len(sizes)] = sizes
    mujoco.mj_forward(self.model, self.data)
    if self.robot.roams:  # the shadow map of a directional light is centred at the light
      above = self.data.xpos[self.robot.body] - LIGHT_DISTANCE * self.data.light_xdir
      self.data.light_xpos[self._far_lights] = above[self._far_lights]
    self.arrows = self._velocities(index)

  def _goals(self) -> Sequence[Goal]:
    return self.task.goals() if self.marked else ()

  def _velocities(self, index: int) -> Sequence[Arrow]:
    """Return the commanded and the actual horizontal velocity as arrows above the robot."""
    commands, body, dof = self.task.commands, self.robot.body, self.robot.dof
    if not self.marked or commands is None or commands.shows != "velocity":
      return ()
    yaw = math.atan2(self.data.xmat[body, 3], self.data.xmat[body, 0])
    ahead = np.array([math.cos(yaw), math.sin(yaw), 0])
    forward, left = commands.values[index, :2].cpu().numpy()
    commanded = forward * ahead + left * np.array([-ahead[1], ahead[0], 0])
    actual = np.append(self.data.qvel[dof : dof + 2], 0)
    starts = [self.data.xpos[body] + (0, 0, self._height + above) for above in ABOVE]
    ends = (commanded, actual)
    return [np.stack([start, start + LENGTH * end]) for start, end in zip(starts, ends, strict=True)]

  def _focus_shadows(self, points: NDArray[np.float64]) -> None:
    """Limit the shadow map of a robot that roams to its surroundings, instead of all of a large terrain."""
    if self.robot.roams:
      clip = SHADOWED * float(np.linalg.norm(np.ptp(points, axis=0))) / self.model.stat.extent
      self.model.vis.map.shadowclip = min(clip, self.model.vis.map.shadowclip)

  def view(self, aspect: float = ASPECT) -> mujoco.MjvCamera:
    """Return a camera that frames the shown environment, for pictures of this aspect."""
    return view(self.model, self.data, self.robot, aspect)


def task_of(trained: Trained) -> Task:
  """Return the environments to render; raise ConfigError if they have no model."""
  if not isinstance(trained.env, Task):
    raise ConfigError(f"task '{trained.config.task}' has no robot model to render in this engine")
  return trained.env
