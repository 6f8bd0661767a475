"""Benchmarked models, by their names in `cases.ROBOTS`."""

import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

import physics
from benchmarks import cases

FOLDERS = {
  "gymnasium": Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets",
  "assets": Path(__file__).parents[2] / "assets",
  "benchmarks": Path(__file__).parent / "robots",
}
SIDES, RINGS = 12, 4  # vertices around a mesh, and rings of them on each half of it
SELF = 8  # bit of contype and conaffinity of meshes among themselves
CELLS, CELL = 64, 0.1  # number of cells along each side of rough ground, width of a cell [m]
LINK = 0.1  # length of a link of a chain [m]
ROUGHNESS = 0.1  # height difference between the lowest and the highest point [m]


@functools.cache
def load(robot: str) -> physics.Model:
  """Return the model of a robot."""
  chosen = cases.ROBOTS[robot]
  spec = chain(chosen.links) if chosen.links else _read(chosen.file)
  if chosen.rough:
    lay_rough_ground(spec)
  if chosen.meshes:
    put_meshes(spec, chosen.meshes)
  return physics.load_model(spec, integrator=chosen.integrator)


def _read(file: str) -> mujoco.MjSpec:
  folder, name = file.split("/", maxsplit=1)
  return mujoco.MjSpec.from_file(str(FOLDERS[folder] / name))


def chain(links: int) -> mujoco.MjSpec:
  """Return capsules that hang on each other by hinges, without contacts."""
  spec = mujoco.MjSpec()
  body = spec.worldbody
  for number in range(links):
    body = body.add_body(pos=[LINK * (number > 0), 0, 0])
    body.add_joint(axis=[0, 1, number % 2], damping=[0.1, 0, 0])
    ends = [0, 0, 0, LINK, 0, 0]
    body.add_geom(
      type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=ends, size=[0.02, 0, 0], contype=0, conaffinity=0
    )
  return spec


def put_meshes(spec: mujoco.MjSpec, names: str) -> None:
  """Replace the geoms with matching names by convex meshes of their size, which collide with each other."""
  compiled = spec.compile()
  for geom in [geom for geom in spec.geoms if re.fullmatch(names, geom.name)]:
    index = compiled.geom(geom.name).id
    points = np.array(list(surface(compiled.geom_type[index], compiled.geom_size[index])))
    spec.add_mesh(name=geom.name, uservert=points.ravel())
    geom.pos, geom.quat = compiled.geom_pos[index], compiled.geom_quat[index]
    geom.fromto[:] = np.nan
    geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, geom.name
    geom.contype, geom.conaffinity = geom.contype | SELF, geom.conaffinity | SELF


def surface(kind: int, size: NDArray[np.float64]) -> Iterator[tuple[float, float, float]]:
  """Yield points of the surface of a box, sphere or capsule."""
  if kind == mujoco.mjtGeom.mjGEOM_BOX:
    yield from itertools.product(*((-half, half) for half in size))
    return
  length = size[1] if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
  for end, row, side in itertools.product((1, -1), range(RINGS), range(SIDES)):
    tilt, turn = 0.5 * np.pi * row / (RINGS - 1), 2 * np.pi * side / SIDES
    across = size[0] * np.sin(tilt)
    yield across * np.cos(turn), across * np.sin(turn), end * (size[0] * np.cos(tilt) + length)


def lay_rough_ground(spec: mujoco.MjSpec) -> None:
  """Replace the floor of a model by a height field with its highest point at z = 0."""
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


def elevation(seed: int = 0) -> NDArray[np.float64]:
  """Return heights [CELLS + 1, CELLS + 1] from 0 to 1: random at every second point, interpolated between."""
  coarse = np.arange(CELLS // 2 + 1)
  fine = np.arange(CELLS + 1) / 2
  heights = np.random.default_rng(seed).uniform(size=(len(coarse), len(coarse)))
  for _ in range(2):
    heights = np.stack([np.interp(fine, coarse, row) for row in heights]).T
  return (heights - heights.min()) / (heights.max() - heights.min())
