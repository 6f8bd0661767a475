"""Cameras: images of every environment of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from physics.camera.lens import Lens
from physics.camera.renderer import Draw, Images
from physics.camera.view import FOVY, KINDS, POS, QUAT, View
from physics.model.model import Model
from physics.model.spelling import nearest_word

GROUPS = 3  # geoms of groups 0 to 2 are drawn, as MuJoCo's renderer does by default


class Filming(Protocol):
  """A simulation in which cameras see."""

  model: Any
  num_envs: int

  def attach_view(self, view: View) -> tuple[Draw, torch.Tensor, Images]:
    """Return a function that draws a view's images in the present state, its scene [row, env], the images."""


class Camera:
  """A camera that sees every environment of a simulation, as MuJoCo's renderer draws it.

  Args:
    simulation: its present state is seen.
    name: a camera of the file; or a body, whose frame a camera has then: it looks along -z, with y upwards.
    width: columns of pixels.
    height: rows of pixels.
    kinds: what is drawn: "depth", "segmentation", "normal".
  """

  images: Images  # [num_envs, height, width, channels] by kind
  pos: torch.Tensor  # [num_envs, 3] [m] from the camera's own place, in its axes; to be written
  quat: torch.Tensor  # [num_envs, 4] from the camera's own axes
  fovy: torch.Tensor  # [num_envs] [degree] vertical field of view
  near: float  # [m] depths that are drawn
  far: float  # [m] also the depth of the background

  def __init__(
    self, simulation: Filming, name: str, width: int, height: int, kinds: Sequence[str] = ("depth",)
  ) -> None:
    model, num_envs = simulation.model, simulation.num_envs
    camera, body = _find(model, name)
    _check(name, width, height, kinds)
    lens = Lens.of(model, camera, width, height)
    view = View(camera, body, lens, kinds, drawn_geoms(model), ())
    self.name, self.near, self.far = name, lens.near, lens.far
    self._draw, scene, self.images = simulation.attach_view(view)
    self.pos, self.quat = scene[POS:QUAT, :num_envs].T, scene[QUAT:FOVY, :num_envs].T
    self.fovy = scene[FOVY, :num_envs]
    scene[QUAT] = 1.0
    scene[FOVY] = float(model.mj.cam_fovy[camera] if camera >= 0 else model.mj.vis.global_.fovy)

  def render(self, mask: torch.Tensor | None = None) -> Images:
    """Draw the present state where `mask` [num_envs] holds (None: everywhere); return `images`.

    They are [num_envs, height, width, channels] by kind, row 0 is the upper one, and the next call overwrites
    them.
    """
    self._draw(mask)
    return self.images


def drawn_geoms(model: Model) -> list[int]:
  """Return the geoms that MuJoCo's renderer draws by default: of groups 0 to 2, not wholly transparent."""
  mj = model.mj
  shown = (mj.geom_group >= 0) & (mj.geom_group < GROUPS) & (mj.geom_rgba[:, 3] > 0)
  return [geom for geom in range(model.ngeom) if shown[geom]]


def _find(model: Model, name: str) -> tuple[int, int]:
  """Return the camera with a name, and the body with it, -1: there is none; KeyError names the nearest."""
  cameras = [model.mj.cam(i).name for i in range(model.mj.ncam)]
  if name in cameras:
    return cameras.index(name), -1
  if name in model.body_names:
    return -1, model.body_names.index(name)
  known = [*cameras, *model.body_names]
  raise KeyError(f"no camera or body {name!r}; the nearest is {nearest_word(name, known)!r}")


def _check(name: str, width: int, height: int, kinds: Sequence[str]) -> None:
  """Raise ValueError if there is no such image."""
  if width < 1 or height < 1:
    raise ValueError(f"camera {name!r}: an image of {width} x {height} pixels has none")
  for kind in kinds:
    if kind not in KINDS:
      raise ValueError(f"camera {name!r} cannot draw {kind!r}; it can draw {', '.join(KINDS)}")
