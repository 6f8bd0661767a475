"""MuJoCo scene of a task for rendering, with a checkered floor and a sky."""

import dataclasses
import math
import os

import mujoco
import numpy as np
from mujoco import mjtBuiltin, mjtGeom, mjtJoint, mjtTexture, mjtTextureRole, mjtTrn

from gpurobot.config import ConfigError
from gpurobot.deploy.trained import Trained
from tasks.base import Task

FLOOR = "gpurobot floor"  # texture and material
STATE = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")
AZIMUTH, ELEVATION = 130.0, -20.0  # of the camera [degree]
NEAR, FAR = 1.1, 1.5  # camera distance, as a multiple of that at which the bounding sphere fills the image
EARTH, TILE, HORIZON, ZENITH = (0.5, 0.55, 0.6), (0.6, 0.65, 0.7), (0.85, 0.9, 0.95), (0.45, 0.6, 0.8)
AMBIENT = 0.3  # smallest ambient light


class Stage:
  """MuJoCo `model` and `data` of a task's scene, which show one environment at a time."""

  def __init__(self, task: Task) -> None:
    """Compile the scene; add floor and sky if they are missing."""
    self.task = task
    self.model = dressed(task.scene(task.config))
    self.data = mujoco.MjData(self.model)
    self.robot = find_robot(self.model)
    self._far_lights = self.model.light_type[:, None] == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL

  def show(self, index: int) -> None:
    """Copy the state of one environment to `data` and compute its kinematics."""
    for name in STATE:
      getattr(self.data, name)[:] = getattr(self.task.sim, name)[index].cpu().numpy()
    if "geom_size" in self.task.model.varied:
      self.model.geom_size[:] = self.task.sim.geom_size[index].cpu().numpy()
    mujoco.mj_forward(self.model, self.data)
    if self.robot.free:  # the shadow map of a directional light is centred at the light
      self.data.light_xpos[:, :2] += self.data.xpos[self.robot.body, :2] * self._far_lights


def task_of(trained: Trained) -> Task:
  """Return the environments to render; raise ConfigError if they have no model."""
  if not isinstance(trained.env, Task):
    raise ConfigError(f"task '{trained.config.task}' has no robot model to render in this engine")
  return trained.env


@dataclasses.dataclass(frozen=True)
class Robot:
  """The actuated kinematic tree of a model."""

  body: int  # root body of the tree
  dof: int  # first degree of freedom of the tree
  free: bool  # whether the root has a free joint; dofs from `dof` on are then its velocity along x, y, z


def find_robot(model: mujoco.MjModel) -> Robot:
  """Return the tree of the first actuator on a joint or site, or else the first tree that moves."""
  bodies = {mjtTrn.mjTRN_JOINT: model.jnt_bodyid, mjtTrn.mjTRN_SITE: model.site_bodyid}
  targets = zip(model.actuator_trntype.tolist(), model.actuator_trnid[:, 0].tolist(), strict=True)
  driven = [int(bodies[kind][target]) for kind, target in targets if kind in bodies]
  root = model.body_rootid[driven[0] if driven else model.dof_bodyid[0]]
  dof = int(np.flatnonzero(model.body_rootid[model.dof_bodyid] == root)[0])
  free = model.jnt_type[model.dof_jntid[dof]] == mjtJoint.mjJNT_FREE
  return Robot(int(root), dof, bool(free))


def view(stage: Stage) -> mujoco.MjvCamera:
  """Return a camera: it follows a robot with a free base, or shows the scene of one with a fixed base."""
  model, data, robot = stage.model, stage.data, stage.robot
  ground = np.isin(model.geom_type, (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_HFIELD))
  shown = model.body_rootid[model.geom_bodyid] == robot.body if robot.free else ~ground
  centres, sizes = data.geom_xpos[shown], model.geom_rbound[shown, None]
  low, high = (centres - sizes).min(0), (centres + sizes).max(0)
  camera = mujoco.MjvCamera()
  camera.lookat = (low + high) / 2
  if robot.free:
    camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, robot.body
  camera.azimuth, camera.elevation = AZIMUTH, ELEVATION
  radius = float(np.linalg.norm(high - low)) / 2
  just = radius / math.sin(math.radians(model.vis.global_.fovy / 2))
  camera.distance = (FAR if robot.free else NEAR) * just
  return camera


def _spec(scene: os.PathLike[str] | str | mujoco.MjSpec) -> mujoco.MjSpec:
  """Return a scene as a spec that no other code holds."""
  if isinstance(scene, mujoco.MjSpec):
    return scene.copy()
  text = os.fspath(scene)
  return mujoco.MjSpec.from_string(text) if text.lstrip().startswith("<") else mujoco.MjSpec.from_file(text)


def dressed(scene: os.PathLike[str] | str | mujoco.MjSpec) -> mujoco.MjModel:
  """Return the model of a scene, with a checkered floor and a sky unless it has its own."""
  spec = _spec(scene)
  if not any(texture.type == mjtTexture.mjTEXTURE_SKYBOX for texture in spec.textures):
    sky = {"builtin": mjtBuiltin.mjBUILTIN_GRADIENT, "rgb1": HORIZON, "rgb2": ZENITH}
    spec.add_texture(name="gpurobot sky", type=mjtTexture.mjTEXTURE_SKYBOX, width=256, height=256, **sky)
  tiles = {"builtin": mjtBuiltin.mjBUILTIN_CHECKER, "rgb1": EARTH, "rgb2": TILE}
  spec.add_texture(name=FLOOR, type=mjtTexture.mjTEXTURE_2D, width=256, height=256, **tiles)
  material = spec.add_material(name=FLOOR, texuniform=True, texrepeat=(1, 1))
  material.textures[mjtTextureRole.mjTEXROLE_RGB] = FLOOR
  light = spec.visual.headlight
  light.ambient = np.maximum(light.ambient, AMBIENT)
  for geom in spec.geoms:
    if geom.type in (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_HFIELD) and not geom.material:
      geom.material, geom.rgba = FLOOR, (1, 1, 1, 1)
  return spec.compile()
