"""Pictures without a display: environments side by side, drawn by MuJoCo through EGL or OSMesa."""

import functools
import importlib
import math
import os
import subprocess
import sys

import mujoco
import numpy as np
from mujoco import mjtObj
from numpy.typing import NDArray

from gpurobot.config import ConfigError, nearest_word
from gpurobot.viewer.stage import Stage, view
from tasks.base import Task

Picture = NDArray[np.uint8]  # [height, width, 3]

BACKENDS = ("egl", "osmesa")  # the GPU's, else Mesa's on the CPU; Mesa's where EGL is missing
PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco/>")
with mujoco.Renderer(model, 8, 8) as renderer:
  renderer.update_scene(mujoco.MjData(model))
  renderer.render()
"""
SHADOWS = 1024  # texels along a shadow map: MuJoCo's 4096 take half of the time where a CPU draws
GEOMS = 10_000  # room for what a scene shows


@functools.cache
def backend() -> str:
  """Return what draws without a display: MUJOCO_GL if it is set, else the first of BACKENDS that can.

  Raises ConfigError where none can.
  """
  chosen = os.environ.get("MUJOCO_GL")
  for name in [chosen] if chosen else BACKENDS:
    if _draws(name):
      return name
  if chosen:
    raise ConfigError(f"MUJOCO_GL={chosen} cannot draw here: unset it, or install what it needs")
  raise ConfigError(
    "nothing here can draw without a display: install EGL (Debian: libegl1 libgl1-mesa-dri) or OSMesa "
    "(libosmesa6)"
  )


def _draws(name: str) -> bool:
  """Tell whether a backend draws: in another process, as a driver that fails may not fail gently."""
  environment = os.environ | {"MUJOCO_GL": name}
  done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, check=False)
  return done.returncode == 0


class Canvas:
  """Draws states of a model in memory.

  MuJoCo's own `Renderer` is bound to the backend that was chosen when MuJoCo was first imported.
  """

  def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
    """Open an OpenGL context; raise ConfigError where nothing can draw."""
    self.width, self.height, self._model = width, height, model
    self._context = importlib.import_module(f"mujoco.{backend()}").GLContext(width, height)
    self._context.make_current()
    self._resources = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._resources)
    self._scene, self._option = mujoco.MjvScene(model, GEOMS), mujoco.MjvOption()
    self._area = mujoco.MjrRect(0, 0, width, height)

  def draw(self, data: mujoco.MjData, camera: mujoco.MjvCamera) -> Picture:
    """Return what a camera sees."""
    self._context.make_current()  # another canvas may have been
    everything = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(self._model, data, self._option, None, camera, everything, self._scene)
    mujoco.mjr_render(self._area, self._scene, self._resources)
    picture = np.empty((self.height, self.width, 3), np.uint8)
    mujoco.mjr_readPixels(picture, None, self._area, self._resources)
    return picture[::-1]  # OpenGL counts rows from below

  def close(self) -> None:
    """Give the context back."""
    self._context.make_current()
    self._resources.free()
    self._context.free()


class Camera:
  """Draws environments of a task, each in a tile of a grid."""

  def __init__(self, task: Task, envs: int, width: int, height: int, name: str | None = None) -> None:
    """Make tiles of width x height pixels for the first `envs` environments.

    `name` is of a camera of the model; None: one that follows the robot, or shows all where it is held.
    Raises ConfigError where nothing can draw, or the model has no such camera.
    """
    self.stage, self.envs = Stage(task), envs
    self._columns = math.ceil(math.sqrt(envs))
    model = self.stage.model
    model.vis.quality.shadowsize = min(SHADOWS, model.vis.quality.shadowsize)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    self.stage.show(0)
    self._view = view(self.stage) if name is None else _named(model, name)
    self._canvas = Canvas(model, width, height)

  def shoot(self) -> Picture:
    """Return the picture of the present states; what is left of the last row of tiles is black."""
    width, height = self._canvas.width, self._canvas.height
    rows = math.ceil(self.envs / self._columns)
    picture = np.zeros((rows * height, self._columns * width, 3), np.uint8)
    for index in range(self.envs):
      self.stage.show(index)
      row, column = divmod(index, self._columns)
      tile = picture[row * height : (row + 1) * height, column * width : (column + 1) * width]
      tile[:] = self._canvas.draw(self.stage.data, self._view)
    return picture

  def close(self) -> None:
    """Give back what draws."""
    self._canvas.close()


def _named(model: mujoco.MjModel, name: str) -> mujoco.MjvCamera:
  """Return a camera of the model; raise ConfigError where there is none of this name."""
  names = [model.camera(index).name for index in range(model.ncam)]
  if name not in names:
    hint = f"the nearest is '{nearest_word(name, names)}'" if names else "it has none: leave camera out"
    raise ConfigError(f"camera={name}: the model has no such camera; {hint}")
  camera = mujoco.MjvCamera()
  camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
  camera.fixedcamid = mujoco.mj_name2id(model, mjtObj.mjOBJ_CAMERA, name)
  return camera
