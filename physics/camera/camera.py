"""Cameras: images of every environment of a simulation."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from physics.camera.appearance import diffuse, drawn_geoms, geom_colors, light_start, lights_of
from physics.camera.lens import Lens
from physics.camera.renderer import Draw, Images
from physics.camera.view import FOVY, KINDS, POS, QUAT, View
from physics.model.model import Model
from physics.model.spelling import nearest_word


class Filming(Protocol):
  """A simulation that cameras render."""

  model: Any
  num_envs: int

  def attach_view(self, view: View) -> tuple[Draw, torch.Tensor, Images]:
    """Return a function that draws a view's images in the present state, its scene [row, env], the images."""


class Camera:
  """A camera in every environment of a simulation, rendered as by MuJoCo.

  Args:
    simulation: the camera renders its present state.
    name: a camera of the file, or a body to carry one: it looks along the body's -z, with y upwards.
    width: columns of pixels.
    height: rows of pixels.
    kinds: images to draw: "depth", "rgb", "segmentation", "normal".
    depths: near and far clipping distance [m]; None: the file's, as in MuJoCo.
  """

  images: Images  # [num_envs, height, width, channels] by kind
  pos: torch.Tensor  # [num_envs, 3] [m] from the camera's own place, in its axes; to be written
  quat: torch.Tensor  # [num_envs, 4] from the camera's own axes
  fovy: torch.Tensor  # [num_envs] [degree] vertical field of view
  lights: torch.Tensor  # [num_envs, lights, 6] position [m] and direction in the body that carries each
  diffuse: torch.Tensor  # [num_envs, lights + 1, 3] their colours; the last is the camera's own light
  colors: torch.Tensor  # [num_envs, ngeom, 3] of the geoms
  near: float  # [m] depths that are drawn
  far: float  # [m] also the depth of the background

  def __init__(
    self,
    simulation: Filming,
    name: str,
    width: int,
    height: int,
    kinds: Sequence[str] = ("depth",),
    depths: tuple[float, float] | None = None,
  ) -> None:
    model, num_envs = simulation.model, simulation.num_envs
    camera, body = _find(model, name)
    _check(name, (width, height), kinds, depths)
    lens = Lens.of(model, camera, (width, height), depths)
    view = View(name, camera, body, lens, kinds, drawn_geoms(model), lights_of(model))
    self.name, self.near, self.far = name, lens.near, lens.far
    self._draw, scene, self.images = simulation.attach_view(view)

    def part(first: int, start: Any) -> torch.Tensor:
      """Return rows of the scene [num_envs, ...] from `first` on, filled with their initial values."""
      values = torch.as_tensor(np.asarray(start), dtype=scene.dtype, device=scene.device)
      rows = scene[first : first + values.numel()]
      rows.copy_(values.reshape(-1, 1).expand_as(rows))
      return rows[:, :num_envs].T.unflatten(1, values.shape) if values.ndim else rows[0, :num_envs]

    self.pos, self.quat = part(POS, np.zeros(3)), part(QUAT, (1, 0, 0, 0))
    self.fovy = part(FOVY, model.mj.cam_fovy[camera] if camera >= 0 else model.mj.vis.global_.fovy)
    starts = [light_start(model, light) for light in view.lights]
    self.lights = part(view.lamps_row, np.reshape(starts, (-1, 6)))
    self.diffuse = part(view.diffuse_row, diffuse(model, view.lights))
    self.colors = part(view.colors_row, geom_colors(model)[:, :3])

  def render(self, mask: torch.Tensor | None = None) -> Images:
    """Draw the present state where `mask` [num_envs] holds (None: everywhere); return `images`.

    They are [num_envs, height, width, channels] by kind, row 0 is the upper one, and the next call overwrites
    them.
    """
    self._draw(mask)
    return self.images


def _find(model: Model, name: str) -> tuple[int, int]:
  """Return the camera with a name, and the body with it, -1: there is none; KeyError names the nearest."""
  cameras = [model.mj.cam(i).name for i in range(model.mj.ncam)]
  if name in cameras:
    return cameras.index(name), -1
  if name in model.body_names:
    return -1, model.body_names.index(name)
  known = [*cameras, *model.body_names]
  raise KeyError(f"no camera or body {name!r}; the nearest is {nearest_word(name, known)!r}")


def _check(
  name: str, size: tuple[int, int], kinds: Sequence[str], depths: tuple[float, float] | None
) -> None:
  """Raise ValueError for impossible images."""
  if min(size) < 1:
    raise ValueError(f"camera {name!r}: an image of {size[0]} x {size[1]} pixels has none")
  if depths and not 0 < depths[0] < depths[1]:
    raise ValueError(f"camera {name!r}: depths={depths} are not two numbers, 0 < least < greatest")
  if not kinds:
    raise ValueError(f"camera {name!r} draws nothing: name kinds of images: {', '.join(KINDS)}")
  for kind in kinds:
    if kind not in KINDS:
      raise ValueError(f"camera {name!r} cannot draw {kind!r}; the nearest is {nearest_word(kind, KINDS)!r}")
