"""Offscreen rendering by MuJoCo with EGL or OSMesa: environments as tiles of one image."""

import functools
import importlib
import math
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence

import mujoco
import numpy as np
from mujoco import mjtObj
from numpy.typing import NDArray
from PIL import Image

from gpurobot.device import process
from gpurobot.settings.config import ConfigError, suggestion
from gpurobot.viewer.marks import Arrow, draw_arrows
from gpurobot.viewer.task_scene import TaskScene
from tasks.base import Task

Picture = NDArray[np.uint8]  # [height, width, 3]
ShownImages = Callable[[int], Mapping[str, Picture]]  # index of an environment -> images of its policy

BACKENDS = ("egl", "osmesa")  # EGL renders on a GPU, or by Mesa on the CPU; OSMesa does not need EGL
PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco/>")
with mujoco.Renderer(model, 8, 8) as renderer:
  renderer.update_scene(mujoco.MjData(model))
  renderer.render()
"""
SHADOWS = 1024  # size of a shadow map [texels]; MuJoCo's 4096 take half of the time on a CPU
GEOMS = 10_000  # capacity of the scene


@functools.cache
def backend() -> str:
  """Return the offscreen renderer: MUJOCO_GL if it is set, else the first of BACKENDS that works.

  Raises ConfigError if none works.
  """
  chosen = os.environ.get("MUJOCO_GL")
  for name in [chosen] if chosen else BACKENDS:
    if draws(name):
      return name
  if chosen:
    raise ConfigError(f"MUJOCO_GL={chosen} does not work here; unset it, or install its libraries")
  raise ConfigError(
    "no offscreen renderer works here; install EGL (Debian: libegl1 libgl1-mesa-dri) or OSMesa (libosmesa6)"
  )


def draws(name: str) -> bool:
  """Return whether a backend works; test it in another process, as a bad driver may crash."""
  command, environment = process.python("-c", PROBE, MUJOCO_GL=name)
  done = subprocess.run(command, env=environment, capture_output=True, check=False)
  return done.returncode == 0


class Canvas:
  """Offscreen renderer of a model's states.

  MuJoCo's own `Renderer` is not used, as the first import of MuJoCo fixes its backend.
  """

  def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
    """Open an OpenGL context; raise ConfigError if there is no renderer."""
    self.width, self.height, self._model = width, height, model
    self._context = importlib.import_module(f"mujoco.{backend()}").GLContext(width, height)
    self._context.make_current()
    self._resources = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._resources)
    self._scene, self._option = mujoco.MjvScene(model, GEOMS), mujoco.MjvOption()
    self._area = mujoco.MjrRect(0, 0, width, height)

  def draw(self, data: mujoco.MjData, camera: mujoco.MjvCamera, arrows: Sequence[Arrow] = ()) -> Picture:
    """Return the image [height, width, 3] of a camera, and of arrows in its scene."""
    self._context.make_current()  # another canvas may be current
    everything = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(self._model, data, self._option, None, camera, everything, self._scene)
    draw_arrows(self._scene, arrows)
    mujoco.mjr_render(self._area, self._scene, self._resources)
    picture = np.empty((self.height, self.width, 3), np.uint8)
    mujoco.mjr_readPixels(picture, None, self._area, self._resources)
    return picture[::-1]  # OpenGL's first row is at the bottom

  def close(self) -> None:
    """Release the OpenGL context."""
    self._context.make_current()
    self._resources.free()
    self._context.free()


def beside(scene: Picture, seen: Sequence[Picture]) -> Picture:
  """Return a picture of a scene, with a policy's images, if there are any, in a column at its right.

  Each image is as high as its share of the column, and at most as wide as the scene.
  """
  if not seen:
    return scene
  height, width, _ = scene.shape
  room = max(1, height // max(2, len(seen)))  # a single one has half of the height
  fitted = [fit(image, width, room) for image in seen]
  column = np.zeros((height, max(image.shape[1] for image in fitted), 3), np.uint8)
  for number, image in enumerate(fitted):
    column[number * room :][: image.shape[0], : image.shape[1]] = image
  return np.concatenate([scene, column], 1)


def fit(image: Picture, width: int, height: int) -> Picture:
  """Return an image [h, w, 3] as large as it fits into width x height; pixels that grow stay squares."""
  scale = min(width / image.shape[1], height / image.shape[0])
  size = max(1, int(scale * image.shape[1])), max(1, int(scale * image.shape[0]))
  kind = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.BOX
  return np.asarray(Image.fromarray(image).resize(size, kind))


class Camera:
  """Camera on the environments of a task, which draws each as a tile of a grid."""

  def __init__(
    self, task: Task, envs: int, width: int, height: int, name: str | None = None, marked: bool = True
  ) -> None:
    """Set up tiles of width x height pixels for the first `envs` environments.

    name: a camera of the model; None: a camera that follows the robot, or shows the scene if its base is
    fixed. marked: show goals and commands. Raises ConfigError if there is no renderer, or the model has no
    such camera.
    """
    self.rendered, self.envs = TaskScene(task, marked), envs
    self._columns = math.ceil(math.sqrt(envs))
    model = self.rendered.model
    model.vis.quality.shadowsize = min(SHADOWS, model.vis.quality.shadowsize)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    self.rendered.show(0)
    self._view = self.rendered.view(width / height) if name is None else _named(model, name)
    self._canvas = Canvas(model, width, height)

  def shoot(self, images: ShownImages | None = None) -> Picture:
    """Return the image [rows * height, columns * width, 3] of the current states; unused tiles are black.

    images: returns the policy's images of an environment, to show beside the scene in wider tiles.
    """
    tiles = [self._tile(index, images) for index in range(self.envs)]
    height, width, _ = tiles[0].shape
    rows = math.ceil(self.envs / self._columns)
    picture = np.zeros((rows * height, self._columns * width, 3), np.uint8)
    for index, tile in enumerate(tiles):
      row, column = divmod(index, self._columns)
      picture[row * height : (row + 1) * height, column * width : (column + 1) * width] = tile
    return picture

  def _tile(self, index: int, images: ShownImages | None) -> Picture:
    self.rendered.show(index)
    scene = self._canvas.draw(self.rendered.data, self._view, self.rendered.arrows)
    return beside(scene, list(images(index).values())) if images else scene

  def close(self) -> None:
    """Release the renderer."""
    self._canvas.close()


def _named(model: mujoco.MjModel, name: str) -> mujoco.MjvCamera:
  """Return the camera of this name in the model; raise ConfigError if there is none."""
  names = [model.camera(index).name for index in range(model.ncam)]
  if name not in names:
    hint = suggestion(name, names) if names else "; it has no cameras; leave camera out"
    raise ConfigError(f"camera={name}: the model has no such camera{hint}")
  camera = mujoco.MjvCamera()
  camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
  camera.fixedcamid = mujoco.mj_name2id(model, mjtObj.mjOBJ_CAMERA, name)
  return camera
