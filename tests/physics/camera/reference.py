"""Pictures by MuJoCo's renderer, and where its pixels are those of one geom alone."""

import importlib
from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
from mujoco.rendering.classic import gl_context
from numpy.typing import NDArray

from gpurobot.settings.config import ConfigError
from gpurobot.viewer.offscreen import backend
from tests.lacking import lacking


@dataclass(frozen=True)
class Picture:
  """What MuJoCo's renderer draws: [height, width], colours [height, width, 3]."""

  depth: NDArray[np.float32]
  segmentation: NDArray[np.int32]
  rgb: NDArray[np.uint8]

  @property
  def inside(self) -> NDArray[np.bool_]:
    """Pixels away from silhouettes: their eight neighbours show the same geom."""
    padded = np.pad(self.segmentation, 1, mode="edge")
    rows, columns = self.segmentation.shape
    around = [padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
    return np.all([other == self.segmentation for other in around], axis=0)


def draw(mj: mujoco.MjModel, data: mujoco.MjData, camera: str, width: int, height: int) -> Picture:
  """Return MuJoCo's picture of geoms alone, with smooth shapes, one sample per pixel, no haze, no mirrors."""
  quality = mj.vis.quality
  quality.numslices, quality.numstacks, quality.numquads, quality.offsamples = 256, 128, 16, 0
  option = mujoco.MjvOption()
  for groups in (option.sitegroup, option.tendongroup, option.actuatorgroup):
    groups[:] = 0
  with mujoco.Renderer(mj, height, width) as renderer:
    shown = {}
    for kind, begin, end in (
      ("rgb", lambda: None, lambda: None),
      ("depth", renderer.enable_depth_rendering, renderer.disable_depth_rendering),
      ("segmentation", renderer.enable_segmentation_rendering, renderer.disable_segmentation_rendering),
    ):
      begin()
      renderer.update_scene(data, camera, option)
      for flag in (mujoco.mjtRndFlag.mjRND_HAZE, mujoco.mjtRndFlag.mjRND_REFLECTION):
        renderer.scene.flags[flag] = False
      shown[kind] = renderer.render().copy()
      end()
  return Picture(shown["depth"], shown["segmentation"][..., 0], shown["rgb"])


@pytest.fixture
def _draws(monkeypatch):
  """Let MuJoCo draw without a display."""
  try:
    name = backend()
  except ConfigError as error:
    lacking(str(error))
  monkeypatch.setattr(gl_context, "GLContext", importlib.import_module(f"mujoco.{name}").GLContext)
