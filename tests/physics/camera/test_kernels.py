"""The kernels in other numbers of lanes: those of other processors, and of a GPU's thread."""

import pytest
import torch
import warp as wp

import physics
from physics.camera import renderer
from physics.camera.camera import Camera
from physics.camera.kernels import build_kernels
from tests.physics.camera import scenes
from tests.physics.cubin import ARCHITECTURE

ALL = ("depth", "rgb", "segmentation", "normal")


def see(xml):
  model = physics.load_model(xml)
  simulation = physics.Simulation(model, 2, threads=1, outputs=())
  return {kind: image.clone() for kind, image in Camera(simulation, "eye", 27, 19, ALL).render().items()}


@pytest.mark.parametrize("lanes", [1, 8])
def test_images_hardly_depend_on_the_number_of_lanes(lanes, monkeypatch):
  """One lane is the code of a GPU's thread; rounding differs, and with it pixels at silhouettes."""
  wide = see(scenes.SHAPES), see(scenes.GROUND)
  monkeypatch.setattr(renderer, "lanes_on", lambda _device: lanes)
  for one, other in zip(wide, (see(scenes.SHAPES), see(scenes.GROUND)), strict=True):
    for kind in ALL:
      same = torch.isclose(
        one[kind].float(), other[kind].float(), rtol=1e-4, atol=1.5e-3 if kind != "rgb" else 1.5
      )
      assert same.float().mean() > 0.995, kind


def test_the_kernels_compile_for_a_gpu(tmp_path):
  for i, kernel in enumerate(build_kernels("cuda", 1)):
    folder = tmp_path / str(i)
    wp.compile_aot_module(
      kernel.module, arch=ARCHITECTURE, module_dir=str(folder), use_ptx=False, strip_hash=True
    )
    (cubin,) = folder.glob("*.cubin")
    assert b"sm_90" in cubin.read_bytes()
