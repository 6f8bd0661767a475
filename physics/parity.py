"""MuJoCo C as the reference: a drop-in `Simulation`, states to compare on, what rounding alone may explain.

All here computes in float64. States are float32 numbers, so that both engines start from equal ones.
"""

import copy
import dataclasses
from collections.abc import Sequence

import mujoco
import numpy as np
import torch
from mujoco import mjtDisableBit, mjtGeom, mjtJoint
from numpy.typing import NDArray

from physics.model import Model

Floats = NDArray[np.float64]

DERIVED = ("qacc", "xpos", "xquat", "cfrc_ext")
MIXED = (
  "friction",
  "solref",
  "solimp",
  "margin",
)  # `Model` holds them per pair, MuJoCo per geom and per <pair>


class MujocoSimulation:
  """MuJoCo C stepping `num_envs` environments one by one, in float64, behind the names of `Simulation`.

  Fields are tensors [num_envs, ...] on the CPU, written in place and never rebound; `outputs` names derived
  ones. MuJoCo by itself resets an environment whose state is not finite.
  """

  def __init__(self, model: Model, num_envs: int, outputs: Sequence[str] = DERIVED) -> None:
    self.model, self.num_envs = model, num_envs
    self.device, self.threads = torch.device("cpu"), 1
    self._data = mujoco.MjData(model.mj)
    sizes = {"qpos": model.nq, "qvel": model.nv, "ctrl": model.nu, "qacc_warmstart": model.nv}
    self._inputs = {name: np.zeros((num_envs, size)) for name, size in sizes.items()}
    self._outputs = {name: np.zeros((num_envs, *self._read(name).shape)) for name in outputs}
    for name, array in (self._inputs | self._outputs).items():
      setattr(self, name, torch.from_numpy(array))
    self.contact_count = torch.zeros(num_envs, dtype=torch.int32)
    self.overflow = torch.zeros(num_envs, dtype=torch.int32)  # stays 0: MuJoCo's lists grow
    self.solver_niter = torch.zeros(num_envs, dtype=torch.int32)
    self.reset()

  def step(self, substeps: int = 1, ctrl: torch.Tensor | None = None) -> None:
    """Advance by `substeps` time steps; `ctrl` [num_envs, substeps, nu] gives each its own control."""
    for env in range(self.num_envs):
      self._load(env)
      for substep in range(substeps):
        if ctrl is not None:
          self._data.ctrl[:] = ctrl[env, substep].numpy()
        mujoco.mj_step(self.model.mj, self._data)
      for name, array in self._inputs.items():
        array[env] = getattr(self._data, name)
      self._store(env)

  def forward(self, mask: torch.Tensor | None = None) -> None:
    """Compute derived quantities of the present state where `mask` [num_envs] holds (default: everywhere)."""
    for env in self._selected(mask):
      self._load(env)
      mujoco.mj_forward(self.model.mj, self._data)
      self._store(env)

  def reset(self, mask: torch.Tensor | None = None) -> None:
    """Set the model's defaults where `mask` [num_envs] holds (default: everywhere)."""
    chosen = self._selected(mask)
    for array in self._inputs.values():
      array[chosen] = 0.0
    self._inputs["qpos"][chosen] = self.model.qpos0

  def get_state(self) -> torch.Tensor:
    """Return all that the future depends on [num_envs, nq + nv + nu + nv]."""
    return torch.from_numpy(np.concatenate(list(self._inputs.values()), axis=1))

  def set_state(self, state: torch.Tensor) -> None:
    """Restore what `get_state` returned."""
    ends = np.cumsum([array.shape[1] for array in self._inputs.values()])
    for array, part in zip(self._inputs.values(), np.split(state.numpy(), ends[:-1], axis=1), strict=True):
      array[:] = part

  def _selected(self, mask: torch.Tensor | None) -> list[int]:
    return list(range(self.num_envs)) if mask is None else torch.nonzero(mask).flatten().tolist()

  def _load(self, env: int) -> None:
    for name, array in self._inputs.items():
      getattr(self._data, name)[:] = array[env]

  def _store(self, env: int) -> None:
    mujoco.mj_rnePostConstraint(self.model.mj, self._data)
    for name, array in self._outputs.items():
      array[env] = self._read(name)
    self.contact_count[env] = int((self._data.contact.exclude == 0).sum())
    self.solver_niter[env] = int(self._data.solver_niter.max())

  def _read(self, name: str) -> Floats:
    if name == "qM":
      return full_mass_matrix(self.model.mj, self._data)
    return getattr(self._data, name)


def full_mass_matrix(mj: mujoco.MjModel, data: mujoco.MjData) -> Floats:
  """Return M [nv, nv], both triangles."""
  M = np.zeros((mj.nv, mj.nv))
  mujoco.mj_fullM(mj, data, M)
  return M


@dataclasses.dataclass(frozen=True)
class States:
  """States and controls of a model, one per row, all numbers of float32."""

  qpos: Floats  # [num_states, nq]
  qvel: Floats  # [num_states, nv]
  ctrl: Floats  # [num_states, nu]

  def __len__(self) -> int:
    return len(self.qpos)


@dataclasses.dataclass(frozen=True)
class Dynamics:
  """What MuJoCo C makes of states, its solver run to convergence from a cold start; MuJoCo's names."""

  qM: Floats  # noqa: N815 (MuJoCo's name) [num_states, nv, nv]
  qfrc_bias: Floats  # [num_states, nv]
  qacc_smooth: Floats  # [num_states, nv]
  qacc: Floats  # [num_states, nv]
  qpos: Floats  # [num_states, nq] a time step later
  qvel: Floats  # [num_states, nv] a time step later


def random_states(model: Model, count: int, seed: int = 0) -> States:
  """Return a mixture of states: in the air, on the ground, in self-contact, beyond limits, in motion.

  Half come out of rollouts of up to a second with random controls; half of the others have their free bodies
  lowered onto the nearest plane. Limited joints reach a tenth of their range beyond their limits.
  """
  random = np.random.default_rng(seed)
  mj, data = model.mj, mujoco.MjData(model.mj)
  rows: list[list[Floats]] = []
  while len(rows) < count:
    kind = len(rows) % 4
    mujoco.mj_resetData(mj, data)
    data.qpos[:] = _random_pose(model, random)
    data.qvel[:] = random.normal(size=mj.nv)
    data.ctrl[:] = _random_controls(model, random)
    if kind == 1:
      _lower_onto_planes(model, data, random)
    elif kind in (2, 3):
      mujoco.mj_step(mj, data, int(random.uniform(0, 1) / mj.opt.timestep))
    row = [part.astype(np.float32).astype(np.float64) for part in (data.qpos, data.qvel, data.ctrl)]
    if all(np.isfinite(part).all() for part in row) and np.abs(row[1]).max(initial=0) < 100:
      rows.append(row)
  qpos, qvel, ctrl = (np.stack(part) for part in zip(*rows, strict=True))
  return States(qpos, qvel, ctrl)


def _random_pose(model: Model, random: np.random.Generator) -> Floats:
  qpos = model.qpos0.copy()
  for joint in range(model.njnt):
    at, kind = model.jnt_qposadr[joint], mjtJoint(model.jnt_type[joint])
    low, high = model.jnt_range[joint]
    if kind in (mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE):
      if model.jnt_limited[joint]:
        qpos[at] = random.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low))
      else:
        qpos[at] += 0.5 * random.normal()
      continue
    if kind == mjtJoint.mjJNT_FREE:
      qpos[at : at + 3] += 0.2 * random.normal(size=3)
      at += 3
    limit = high if model.jnt_limited[joint] else np.pi / 1.1
    qpos[at : at + 4] = _random_rotation(random, 1.1 * limit)
  return qpos


def _random_rotation(random: np.random.Generator, limit: float) -> Floats:
  """Return the quaternion of a turn by up to `limit` [rad] about any axis."""
  axis, angle = random.normal(size=3), random.uniform(0, limit)
  return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis / np.linalg.norm(axis))])


def _random_controls(model: Model, random: np.random.Generator) -> Floats:
  """Return controls within their ranges, and a fifth beyond, so that clamping is seen."""
  limited = model.actuator_ctrllimited[:, None]
  low, high = np.where(limited, model.actuator_ctrlrange, np.array([-1.0, 1.0])).T
  return (low + high) / 2 + random.uniform(-0.6, 0.6, size=model.nu) * (high - low)


def _lower_onto_planes(model: Model, data: mujoco.MjData, random: np.random.Generator) -> None:
  """Move each free body along the normal of the nearest plane until its tree touches, 2 cm deep at most."""
  mujoco.mj_kinematics(model.mj, data)
  planes = [geom for geom in range(model.ngeom) if model.geom_type[geom] == mjtGeom.mjGEOM_PLANE.value]
  free = [joint for joint in range(model.njnt) if model.jnt_type[joint] == mjtJoint.mjJNT_FREE.value]
  for joint in free if planes else ():
    tree = model.body_treeid[model.jnt_bodyid[joint]]
    geoms = [geom for geom in range(model.ngeom) if model.body_treeid[model.geom_bodyid[geom]] == tree]
    heights = [
      (mujoco.mj_geomDistance(model.mj, data, plane, geom, 100.0, None), plane)
      for plane in planes
      for geom in geoms
    ]
    height, plane = min(heights)
    at = model.jnt_qposadr[joint]
    data.qpos[at : at + 3] -= (height + random.uniform(-0.005, 0.02)) * data.geom_xmat[plane].reshape(3, 3)[
      :, 2
    ]


def reference(model: Model, states: States) -> Dynamics:
  """Compute the dynamics of `states` in MuJoCo C."""
  return _dynamics(converging(model.mj), states)


def converging(mj: mujoco.MjModel) -> mujoco.MjModel:
  """Return a copy of the model whose solver starts cold and stops only when float64 has no better answer."""
  mj = copy.copy(mj)
  mj.opt.tolerance, mj.opt.ls_tolerance = 1e-14, 1e-8
  mj.opt.iterations, mj.opt.ls_iterations = 200, 200
  mj.opt.disableflags |= mjtDisableBit.mjDSBL_WARMSTART
  return mj


def _dynamics(mj: mujoco.MjModel, states: States) -> Dynamics:
  data = mujoco.MjData(mj)
  rows = []
  for qpos, qvel, ctrl in zip(states.qpos, states.qvel, states.ctrl, strict=True):
    data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, ctrl
    mujoco.mj_forward(mj, data)
    row = [full_mass_matrix(mj, data), data.qfrc_bias.copy(), data.qacc_smooth.copy(), data.qacc.copy()]
    mujoco.mj_Euler(mj, data)
    rows.append([*row, data.qpos.copy(), data.qvel.copy()])
  return Dynamics(*(np.stack(part) for part in zip(*rows, strict=True)))


def relative_error(values: Floats, expected: Floats) -> Floats:
  """Return per state the largest deviation, relative to the larger of 1 and the largest expected value."""
  values, expected = (array.reshape(len(array), -1) for array in (values, expected))
  return np.abs(values - expected).max(axis=1) / np.maximum(1.0, np.abs(expected).max(axis=1))


def one_ulp_effect(model: Model, states: States, draws: int = 16, seed: int = 0) -> Dynamics:
  """Return per state the largest relative error that rounding to float32 can explain, by field.

  Each draw moves every number of the model and of the states by one unit in the last place of float32, up or
  down, and lets MuJoCo C compute in float64. The result's fields have shape [num_states].
  """
  random = np.random.default_rng(seed)
  expected = reference(model, states)
  names = [field.name for field in dataclasses.fields(Dynamics)]
  effects = []
  for _ in range(draws):
    mj = converging(model.mj)
    _move_constants(mj, random)
    moved = States(*(_moved(getattr(states, part), random) for part in ("qpos", "qvel", "ctrl")))
    found = _dynamics(mj, moved)
    effects.append([relative_error(getattr(found, name), getattr(expected, name)) for name in names])
  return Dynamics(*np.max(effects, axis=0))


def _move_constants(mj: mujoco.MjModel, random: np.random.Generator) -> None:
  """Move every number that `Model` holds."""
  names = [field.name for field in dataclasses.fields(Model)]
  names += [f"{element}_{parameter}" for element in ("geom", "pair") for parameter in MIXED]
  for name in names:
    values = getattr(mj, name, None)
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
      values[:] = _moved(values, random)
  mj.opt.gravity = _moved(mj.opt.gravity, random)


def _moved(values: Floats, random: np.random.Generator) -> Floats:
  """Move each number by one float32 unit in the last place, up or down; zeros stay."""
  ulp = np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
  return values + ulp * random.choice([-1.0, 1.0], size=values.shape) * (values != 0)
