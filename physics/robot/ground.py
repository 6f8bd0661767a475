"""Uneven ground: a height field in place of a robot's floor, and the heights that a file has."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtGeom

from physics.load import Source, read_spec
from physics.mesh_files import read_mesh
from physics.model.model import Floats
from physics.robot.source import FLOOR

FIELD = "terrain"
BASE = 0.5  # thickness of the height field below its lowest point [m]
IMAGES, ARRAYS, MESHES = (".png",), (".npy", ".npz"), (".stl", ".obj")
MOST_POINTS = 5_000_000  # of a mesh's heights; each takes 8 microseconds
INSIDE = 1e-3  # distance from the edge of a mesh at which a ray meets it surely [cells]


def on_heights(robot: Source, heights: Floats, half: Sequence[float]) -> mujoco.MjSpec:
  """Return a robot, of a file, text or MjSpec, with a height field in place of its plane `floor`.

  heights: [points along y, points along x] [m]. half: half the sides along x and y [m]. The floor of a file
  or text gets contype 1: its geoms that should touch planes only use another bit. Raises ValueError if there
  is no such plane.
  """
  spec = read_spec(robot)
  plane = spec.geom(FLOOR)
  if plane is None:
    raise ValueError(f"the robot has no geom '{FLOOR}' to make uneven: name its ground plane so")
  if not isinstance(robot, mujoco.MjSpec):
    plane.contype = 1
  make_uneven(spec, plane, heights, half)
  return spec


def make_uneven(spec: mujoco.MjSpec, plane: Any, heights: Floats, half: Sequence[float]) -> None:
  """Turn a plane into a height field, see `on_heights`; it keeps its friction."""
  low, high = (round(float(height), 3) for height in (heights.min(), heights.max()))
  rows, columns = heights.shape
  size = [*half, max(high - low, 0.001), BASE]
  spec.add_hfield(name=FIELD, nrow=rows, ncol=columns, size=size, userdata=heights.ravel())
  plane.type, plane.hfieldname, plane.pos, plane.name = mjtGeom.mjGEOM_HFIELD, FIELD, [0, 0, low], FLOOR


def read_heights(path: str, cell: float, height: float) -> tuple[Floats, float]:
  """Return the heights in a file [points along y, points along x] [m], and the distance of points [m].

  An image or array has a map's rows: from the greatest y to the least. `height` is the height of an image's
  white above its black [m], `cell` the distance of points [m]; a .npz file has arrays `heights` and `cell`.
  Of a mesh counts the highest surface, or the lowest point where it has a hole. Raises ValueError.
  """
  file, ending = Path(path), Path(path).suffix.lower()
  if ending not in (*IMAGES, *ARRAYS, *MESHES):
    raise ValueError(f"env.terrain={path}: write flat, rough, stairs or a file .png, .npy, .npz, .stl, .obj")
  if not file.is_file():
    raise ValueError(f"env.terrain={path}: there is no such file in {file.absolute().parent}")
  try:
    if ending in MESHES:
      return _of_mesh(file, cell, file.stat().st_mtime_ns), cell
    if ending in IMAGES:
      return _of_image(file) * height, cell
    found = np.load(file)
    grid, cell = (found["heights"], float(found["cell"])) if ending == ".npz" else (found, cell)
  except KeyError as error:
    raise ValueError(f"env.terrain={path}: save arrays 'heights' and 'cell' [m] ({error.args[0]})") from error
  except (OSError, TypeError, ValueError) as error:
    raise ValueError(f"env.terrain={path}: {' '.join(str(error).split())}") from error
  heights = np.asarray(grid)
  if heights.ndim != 2 or min(heights.shape) < 2 or heights.dtype.kind not in "fiu":
    raise ValueError(f"env.terrain={path}: {heights.dtype} {list(heights.shape)} is no table of heights")
  if not np.isfinite(heights).all() or not cell > 0:
    raise ValueError(f"env.terrain={path}: heights have to be finite, and cell={cell:g} positive")
  return heights[::-1].astype(float), cell


def _of_image(file: Path) -> Floats:
  """Return the grey of an image between its darkest point, 0, and its lightest, 1 [rows, columns]."""
  spec = mujoco.MjSpec()
  spec.add_hfield(name=FIELD, file=str(file.absolute()), size=[1, 1, 1, 1])
  spec.worldbody.add_geom(type=mjtGeom.mjGEOM_HFIELD, hfieldname=FIELD)
  mj = spec.compile()
  return mj.hfield_data.reshape(mj.hfield_nrow[0], mj.hfield_ncol[0]).astype(float)


@functools.lru_cache(maxsize=1)  # scene, task and viewer ask for the same
def _of_mesh(file: Path, cell: float, changed: int) -> Floats:  # noqa: ARG001 (a changed file is read again)
  """Return the heights that vertical rays meet [rows, columns] [m]."""
  content, ending = read_mesh(file)
  spec, name = mujoco.MjSpec(), f"ground{ending}"
  spec.assets = {name: content}
  spec.add_mesh(name=FIELD, file=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
  spec.worldbody.add_geom(type=mjtGeom.mjGEOM_MESH, meshname=FIELD, contype=0, conaffinity=0)
  mj = spec.compile()
  data, down = mujoco.MjData(mj), np.array([0.0, 0.0, -1.0])
  mujoco.mj_kinematics(mj, data)
  vertices = mj.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
  low, high = vertices.min(0), vertices.max(0)
  counts = 1 + np.floor((high - low)[:2] / cell + INSIDE).astype(int)
  if counts.prod() > MOST_POINTS or min(counts) < 2:
    sides = " x ".join(f"{side:.3g}" for side in (high - low)[:2])
    raise ValueError(f"it is {sides} m, {counts.prod():,} points: write another env.terrain_cell")
  edge = INSIDE * cell
  x, y = (np.clip(low[i] + cell * np.arange(n), low[i] + edge, high[i] - edge) for i, n in enumerate(counts))
  above = high[2] + 1.0
  met = [[mujoco.mj_rayMesh(mj, data, 0, np.array([a, b, above]), down) for a in x] for b in y]
  return np.where(np.less(met, 0), low[2], above - np.array(met))
