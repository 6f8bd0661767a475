"""Benchmarked models, by their names in `cases.ROBOTS`."""

import functools
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

import physics
from benchmarks import cases

FOLDERS = {
  "gymnasium": Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets",
  "assets": Path(__file__).parents[1] / "assets",
}
CELLS, CELL = 64, 0.1  # number of cells along each side of rough ground, width of a cell [m]
ROUGHNESS = 0.1  # height difference between the lowest and the highest point [m]


@functools.cache
def load(robot: str) -> physics.Model:
  """Return the model of a robot."""
  chosen = cases.ROBOTS[robot]
  folder, name = chosen.file.split("/", maxsplit=1)
  path = FOLDERS[folder] / name
  return physics.load_model(rough_ground(path) if chosen.rough else path, integrator=chosen.integrator)


def rough_ground(path: Path) -> mujoco.MjSpec:
  """Return the model of a file with its floor replaced by a height field, whose highest point is z = 0."""
  spec = mujoco.MjSpec.from_file(str(path))
  heights, side = elevation(), CELLS * CELL / 2
  spec.add_hfield(
    name="rough",
    nrow=CELLS + 1,
    ncol=CELLS + 1,
    size=[side, side, ROUGHNESS, ROUGHNESS],
    userdata=heights.ravel(),
  )
  floor = spec.geom("floor")
  floor.type, floor.hfieldname, floor.pos = mujoco.mjtGeom.mjGEOM_HFIELD, "rough", [0, 0, -ROUGHNESS]
  floor.contype = 1  # geoms that touch planes only have another bit
  return spec


def elevation(seed: int = 0) -> NDArray[np.float64]:
  """Return heights [CELLS + 1, CELLS + 1] from 0 to 1: random at every second point, interpolated between."""
  coarse = np.arange(CELLS // 2 + 1)
  fine = np.arange(CELLS + 1) / 2
  heights = np.random.default_rng(seed).uniform(size=(len(coarse), len(coarse)))
  for _ in range(2):
    heights = np.stack([np.interp(fine, coarse, row) for row in heights]).T
  return (heights - heights.min()) / (heights.max() - heights.min())
