"""MuJoCo C on the host, one state at a time: computations of a task before its simulation begins."""

import copy
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from physics.model.model import Floats, Model
from physics.model.pairs import OVERRIDE

FAR = 100.0  # beyond which no distance is measured [m]


def evaluate(
  model: Model, states: Mapping[str, Floats], fields: Sequence[str], steps: int = 0
) -> dict[str, Floats]:
  """Return fields of `mujoco.MjData` [n, ...] by name for n states, after `steps` time steps without control.

  `states` holds arrays [n, ...] by name, such as qpos, qvel, mocap_pos; others have the model's default.
  """
  data = mujoco.MjData(model.mj)
  found: dict[str, list[Floats]] = {name: [] for name in fields}
  for row in range(len(next(iter(states.values())))):
    mujoco.mj_resetData(model.mj, data)
    for name, values in states.items():
      getattr(data, name)[:] = values[row]
    for _ in range(steps):
      mujoco.mj_step(model.mj, data)
    mujoco.mj_forward(model.mj, data)
    for name in fields:
      found[name].append(np.array(getattr(data, name)))
  return {name: np.array(values) for name, values in found.items()}


def initial_inertia(model: Model) -> Floats:
  """Return M [nv, nv] in the initial pose, both triangles."""
  mj, data, inertia = model.mj, mujoco.MjData(model.mj), np.zeros((model.nv, model.nv))
  for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_makeM):
    stage(mj, data)
  mujoco.mj_fullM(mj, data, inertia)
  return inertia


def lowest(model: Model, qpos: Floats) -> Floats:
  """Return the height [n] [m] of the lowest point of all moving shapes that collide, above the first plane.

  `qpos` holds n configurations [n, nq]. Raises ValueError if the model has no plane.
  """
  mj, data = model.mj, mujoco.MjData(model.mj)
  planes = np.flatnonzero(mj.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
  if not len(planes):
    raise ValueError("the model has no plane to stand on")
  solid = (mj.geom_contype | mj.geom_conaffinity) > 0
  shapes = np.flatnonzero(solid & (mj.body_weldid[mj.geom_bodyid] > 0))
  heights = np.empty(len(qpos))
  for row, pose in enumerate(qpos):
    data.qpos[:] = pose
    mujoco.mj_kinematics(mj, data)
    distances = [mujoco.mj_geomDistance(mj, data, planes[0], shape, FAR, None) for shape in shapes]
    heights[row] = min(distances, default=0.0)
  return heights


def nearly_touching(model: Model, share: float) -> set[frozenset[int]]:
  """Return the pairs of geoms that touch in the initial pose, or are as near as a share of their radii.

  Geoms of free bodies count only if they are as shallow in each other: many files leave them in one place,
  and tasks spread them out.
  """
  mj = copy.copy(model.mj)
  mj.geom_margin += share * mj.geom_rbound
  mj.opt.enableflags &= ~OVERRIDE  # of margins
  data = mujoco.MjData(mj)
  mujoco.mj_fwdPosition(mj, data)
  free = mj.jnt_bodyid[mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
  is_free = np.isin(mj.body_rootid[mj.geom_bodyid], free)[data.contact.geom].any(axis=1)
  distance = np.where(is_free, np.abs(data.contact.dist), data.contact.dist)
  return {frozenset(geoms) for geoms in data.contact.geom[distance < data.contact.includemargin].tolist()}


def most_contacts(model: Model, pairs: set[frozenset[int]], poses: int) -> int:
  """Return the most contacts that some pairs of geoms have in random poses, 0 without hinges and slides.

  Joints are anywhere in their ranges; those without one keep their initial pose, but hinges, which turn.
  """
  mj, data, random = model.mj, mujoco.MjData(model.mj), np.random.default_rng(0)
  hinges = mj.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
  limited = mj.jnt_limited.astype(bool) & (hinges | (mj.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE))
  moved = limited | hinges
  low, high = np.where(limited[:, None], mj.jnt_range, (-np.pi, np.pi))[moved].T
  most = 0
  for _ in range(poses if moved.any() else 0):
    data.qpos[mj.jnt_qposadr[moved]] = random.uniform(low, high)
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    mujoco.mj_collision(mj, data)
    most = max(most, sum(frozenset(geoms) in pairs for geoms in data.contact.geom.tolist()))
  return most
