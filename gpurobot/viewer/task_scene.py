"""MuJoCo scene of a task for rendering, with light, ground and sky."""

import mujoco
import numpy as np

from gpurobot.deploy.trained import Trained
from gpurobot.settings.config import ConfigError
from gpurobot.viewer.framing import ASPECT, corners, find_robot, subject, view
from gpurobot.viewer.scenery import dressed
from tasks.base import Task

LIGHT_DISTANCE = 10.0  # of a light from far away, from the robot [m]
SHADOWED = 3.0  # half width of the area with shadows, as a multiple of the robot's size
STATE = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")


class TaskScene:
  """MuJoCo `model` and `data` of a task's scene, which show one environment at a time."""

  def __init__(self, task: Task) -> None:
    """Compile the scene; add light, ground and sky if they are missing."""
    self.task = task
    self.model = dressed(task.scene(task.config))
    self.data = mujoco.MjData(self.model)
    self.robot = find_robot(self.model)
    self._far_lights = self.model.light_type == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    self._focus_shadows()

  def show(self, index: int) -> None:
    """Copy the state of one environment to `data` and compute its kinematics."""
    for name in STATE:
      getattr(self.data, name)[:] = getattr(self.task.sim, name)[index].cpu().numpy()
    if "geom_size" in self.task.model.varied:
      sizes = self.task.sim.geom_size[index].cpu().numpy()
      self.model.geom_size[: len(sizes)] = sizes
    mujoco.mj_forward(self.model, self.data)
    if self.robot.roams:  # the shadow map of a directional light is centred at the light
      above = self.data.xpos[self.robot.body] - LIGHT_DISTANCE * self.data.light_xdir
      self.data.light_xpos[self._far_lights] = above[self._far_lights]

  def _focus_shadows(self) -> None:
    """Limit the shadow map of a robot that roams to its surroundings, instead of all of a large terrain."""
    if self.robot.roams:
      mujoco.mj_kinematics(self.model, self.data)
      points = corners(self.model, self.data, subject(self.model, self.robot))
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
