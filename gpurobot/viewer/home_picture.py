"""Picture of a robot in its home pose."""

from pathlib import Path

import mujoco
from PIL import Image

from gpurobot.settings.config import ConfigError
from gpurobot.viewer.framing import find_robot, view
from gpurobot.viewer.offscreen import Canvas
from gpurobot.viewer.scenery import dressed


def draw(scene: mujoco.MjSpec, path: str, width: int, height: int) -> None:
  """Write a picture of a scene in its first keyframe; raise ConfigError if it cannot be drawn."""
  if Path(path).suffix.lower() not in (".png", ".jpg", ".webp"):
    raise ConfigError(f"picture={path}: write a name that ends with .png, .jpg or .webp")
  model = dressed(scene)
  model.vis.global_.offwidth, model.vis.global_.offheight = width, height
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_forward(model, data)
  camera = view(model, data, find_robot(model), width / height)
  canvas = Canvas(model, width, height)
  picture = Image.fromarray(canvas.draw(data, camera))
  canvas.close()
  try:
    picture.save(path)
  except OSError as error:
    raise ConfigError(f"picture={path} cannot be written: {error.strerror}") from error
