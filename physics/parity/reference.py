"""Reference results of MuJoCo C, and the effect of rounding on them."""

import copy
import dataclasses
from collections.abc import Sequence
from functools import lru_cache

import mujoco
import numpy as np
from mujoco import mjtDisableBit, mjtJacobian

from physics.dynamics.kinematics import BALL, FREE
from physics.dynamics.tendon import passes_through, side_site
from physics.engines.mujoco_engine import read_field
from physics.model.model import Bools, Floats, Model
from physics.parity.given_contacts import MEASURES, GivenContacts
from physics.parity.states import States
from physics.support import geoms_on_path

DType = type[np.floating]
ITERATIONS = 40  # limit of the reference's solver, whatever the file says
SWEEPS = 100  # of noslip, whatever the file says
SEARCH = 1e-12  # [m] precision of the engine's searches for contacts: where they end, the normal has its root
WRAPPED = 1e-6  # error of quantities that depend on where a tendon touches a geom from within
MIXED = ("friction", "solref", "solimp", "margin")  # `Model` holds them per pair, MuJoCo per geom and <pair>


@dataclasses.dataclass(frozen=True)
class PipelineResults:
  """The results of MuJoCo C in some states, in the order of MuJoCo's pipeline."""

  xpos: Floats  # [num_states, nbody, 3]
  xquat: Floats  # [num_states, nbody, 4]
  qM: Floats  # [num_states, nv, nv]
  qfrc_bias: Floats  # [num_states, nv]
  qfrc_passive: Floats  # [num_states, nv]
  qfrc_actuator: Floats  # [num_states, nv]
  qacc_smooth: Floats  # [num_states, nv]
  qacc: Floats  # [num_states, nv]
  cfrc_ext: Floats  # [num_states, nbody, 6]
  sensordata: Floats  # [num_states, nsensordata]
  qpos: Floats  # [num_states, nq] a time step later
  qvel: Floats  # [num_states, nv] a time step later
  act: Floats  # [num_states, na] a time step later
  plastic: Floats  # [num_states, nplastic] a time step later


STAGES = tuple(field.name for field in dataclasses.fields(PipelineResults))[:-4]
STEP = ("qpos", "qvel", "act", "plastic")


def reference(model: Model, states: States, contacts: Sequence[Floats] | None = None) -> PipelineResults:
  """Return the results of MuJoCo C in `states`, with a converged solver.

  `contacts` are rows per state, see `traced_contacts`: searched ones replace MuJoCo's own.
  """
  return _results(converging(model.mj), states, _given(model, contacts))


def merged(results: PipelineResults, others: PipelineResults, rows: Bools) -> PipelineResults:
  """Return results with `rows` [num_states] replaced by `others`, which are of those states alone."""
  fields = {field.name: getattr(results, field.name).copy() for field in dataclasses.fields(PipelineResults)}
  for name, values in fields.items():
    values[rows] = getattr(others, name)
  return PipelineResults(**fields)


def stopped_reference(model: Model, states: States) -> PipelineResults:
  """Return the results of MuJoCo C in `states`, with a solver that stops after `model.iterations`."""
  mj = copy.copy(model.mj)
  mj.opt.iterations = model.iterations
  return _results(mj, states)


def converging(mj: mujoco.MjModel) -> mujoco.MjModel:
  """Return a copy of the model, with solver and collision detection iterating to the precision of float64.

  The solver starts without a warm start, and its matrices are dense: the sparse solver, which large models
  use, does not converge in MuJoCo 4.0.0.
  """
  mj = copy.copy(mj)
  mj.opt.jacobian = mjtJacobian.mjJAC_DENSE
  mj.opt.tolerance, mj.opt.ls_tolerance = 1e-300, 1e-8  # it continues while the cost decreases at all
  mj.opt.ccd_tolerance, mj.opt.ccd_iterations = 1e-16, 200
  mj.opt.iterations, mj.opt.ls_iterations = ITERATIONS, 100
  mj.opt.noslip_iterations, mj.opt.noslip_tolerance = SWEEPS if mj.opt.noslip_iterations else 0, -1.0
  mj.opt.disableflags |= mjtDisableBit.mjDSBL_WARMSTART
  return mj


def converged(model: Model) -> Model:
  """Return the model with solver and searches for contacts that iterate until they converge, here too."""
  mj = copy.copy(model.mj)
  mj.opt.ccd_tolerance, mj.opt.ccd_iterations = SEARCH, 200
  sweeps = SWEEPS if model.noslip_iterations else 0
  return dataclasses.replace(
    model,
    iterations=max(model.iterations, ITERATIONS),
    noslip_iterations=sweeps,
    noslip_tolerance=-1.0,
    mj=mj,
  )


def known_contacts(model: Model, states: States, contacts: Sequence[Floats]) -> Bools:
  """Return in which states [num_states] MuJoCo C has a contact, or nearly, wherever given `contacts` are."""
  mj, given = converging(model.mj), GivenContacts(model)
  data, known = mujoco.MjData(mj), []
  for index, rows in enumerate(contacts):
    mujoco.mj_resetData(mj, data)
    states.load(index, data)
    known.append(given.knows(mj, data, rows))
  return np.array(known, bool)


Given = tuple[GivenContacts, Sequence[Floats]]  # and the rows of each state


def _given(model: Model, contacts: Sequence[Floats] | None) -> Given | None:
  return None if contacts is None else (GivenContacts(model), contacts)


def _results(mj: mujoco.MjModel, states: States, given: Given | None = None) -> PipelineResults:
  data = mujoco.MjData(mj)
  rows: dict[str, list[Floats]] = {name: [] for name in (*STAGES, *STEP)}
  for index in range(len(states)):
    mujoco.mj_resetData(mj, data)
    states.load(index, data)
    if given:
      given[0].forward(mj, data, given[1][index])
    else:
      mujoco.mj_forward(mj, data)
    mujoco.mj_rnePostConstraint(mj, data)
    for name in STAGES:
      rows[name].append(read_field(mj, data, name).copy())
    if given:
      given[0].step(mj, data)
    else:
      mujoco.mj_step(mj, data)
    for name in STEP:
      rows[name].append(getattr(data, name).copy())
  return PipelineResults(**{name: np.stack(values) for name, values in rows.items()})


def relative_error(values: Floats, expected: Floats) -> Floats:
  """Return per state the largest deviation, relative to the larger of 1 and the largest expected value."""
  values, expected = (array.reshape(len(array), -1) for array in (values, expected))
  deviation = np.abs(values - expected).max(axis=1, initial=0.0)
  return deviation / np.maximum(1.0, np.abs(expected).max(axis=1, initial=0.0))


def one_ulp_effect(
  model: Model,
  states: States,
  dtype: DType = np.float32,
  draws: int = 16,
  seed: int = 0,
  contacts: Sequence[Floats] | None = None,
) -> PipelineResults:
  """Return per state the largest relative error that rounding to `dtype` can explain, by field.

  Each draw moves every number of the model, of the states and of given `contacts` by one unit in the last
  place, up or down, and MuJoCo C computes in float64. The result's fields have shape [num_states].
  """
  random = np.random.default_rng(seed)
  expected = reference(model, states, contacts)
  effects = []
  for _ in range(draws):
    mj = perturbed(model.mj, random, dtype)
    others = perturbed_states(model, states, random, dtype)
    moved = contacts and [_moved_contacts(rows, random, dtype) for rows in contacts]
    found = _results(mj, others, _given(model, moved))
    effects.append(
      [relative_error(getattr(found, name), getattr(expected, name)) for name in (*STAGES, *STEP)]
    )
  return PipelineResults(*np.max(effects, axis=0))


@lru_cache(maxsize=8)
def wrapping_error(model: Model) -> float:
  """Return the error that MuJoCo C leaves in tendons: its search for an inside wrap ends at 1e-6."""
  parts = (part for tendon in range(model.ntendon) for part in geoms_on_path(model.mj, tendon))
  is_inside = any(side_site(model, part) >= 0 and passes_through(model, part) for part in parts)
  return WRAPPED if is_inside else 0.0


def sweeping_effect(model: Model, states: States) -> PipelineResults:
  """Return per state the relative change that the second half of noslip's sweeps makes, by field.

  Sweeps over redundant contacts never end: each holds its own point at the expense of the others.
  """
  mj = converging(model.mj)
  mj.opt.noslip_iterations //= 2
  return _change(model, states, mj)


def searching_effect(model: Model, states: States) -> PipelineResults:
  """Return per state the relative change where MuJoCo's searches end as early as the engine's, by field."""
  mj = converging(model.mj)
  mj.opt.ccd_tolerance = SEARCH
  return _change(model, states, mj)


def _change(model: Model, states: States, mj: mujoco.MjModel) -> PipelineResults:
  """Return per state the deviation of another model's results from the reference, by field."""
  expected, found = reference(model, states), _results(mj, states)
  return PipelineResults(
    *(relative_error(getattr(found, name), getattr(expected, name)) for name in (*STAGES, *STEP))
  )


def perturbed(mj: mujoco.MjModel, random: np.random.Generator, dtype: DType = np.float32) -> mujoco.MjModel:
  """Return a converging copy with every number that `Model` holds moved by a unit in the last place.

  A body's inertia moves by a unit in the last place of its composite inertia about the root of its tree:
  that is the size at which spatial algebra adds inertias.
  """
  mj = converging(mj)
  about_root = _inertia_about_root(mj)
  names = [field.name for field in dataclasses.fields(Model)]
  names += [f"{element}_{parameter}" for element in ("geom", "pair") for parameter in MIXED]
  for name in names:
    values = getattr(mj, name, None)
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
      move = _turned if name.endswith("quat") else _moved
      values[:] = move(values, random, dtype)
  mj.opt.gravity = _moved(mj.opt.gravity, random, dtype)
  mj.body_inertia += _moved(about_root, random, dtype) - about_root
  return mj


def _inertia_about_root(mj: mujoco.MjModel) -> Floats:
  """Return the composite moments of inertia [nbody, 3] of bodies about their root bodies at qpos0.

  Axes are ignored, because only the size matters.
  """
  data = mujoco.MjData(mj)
  mujoco.mj_kinematics(mj, data)
  distance = np.linalg.norm(data.xipos - data.xpos[mj.body_rootid], axis=1)
  inertia = (mj.body_mass * distance**2)[:, None] + mj.body_inertia
  for body in reversed(range(1, mj.nbody)):
    inertia[mj.body_parentid[body]] += inertia[body]
  return inertia


def perturbed_states(
  model: Model, states: States, random: np.random.Generator, dtype: DType = np.float32
) -> States:
  """Return the states with every number moved by a unit in the last place, time and history excepted."""
  parts = [(name, values) for name, values in states.parts() if name not in ("time", "history")]
  moved = {name: _moved(values, random, dtype) for name, values in parts}
  for joint in range(model.njnt):
    start = {FREE: 3, BALL: 0}.get(int(model.jnt_type[joint]))
    if start is not None:
      at = int(model.jnt_qposadr[joint]) + start
      moved["qpos"][:, at : at + 4] = _turned(states.qpos[:, at : at + 4], random, dtype)
  if "mocap_quat" in moved:
    moved["mocap_quat"] = _turned(moved["mocap_quat"], random, dtype)
  return dataclasses.replace(states, **moved)


def _moved_contacts(rows: Floats, random: np.random.Generator, dtype: DType) -> Floats:
  """Move measures of contacts [n, 12] by one unit in the last place of 1 (m), as positions are rounded."""
  rows = rows.copy()
  rows[:, MEASURES] += _signs(random, rows[:, MEASURES].shape) * float(np.finfo(dtype).eps)
  return rows


def _turned(quaternions: Floats, random: np.random.Generator, dtype: DType) -> Floats:
  """Move the components [..., 4] of rotations by the machine epsilon: rotations are rounded relative to 1.

  The identity, and half turns about an axis, stay: they are exact.
  """
  moves = _signs(random, quaternions.shape) * float(np.finfo(dtype).eps)
  return quaternions + moves * (np.abs(quaternions) < 1).all(axis=-1, keepdims=True)


def _moved(values: Floats, random: np.random.Generator, dtype: DType) -> Floats:
  """Move each number by one unit in the last place, up or down; zeros stay."""
  ulp = np.spacing(np.abs(values).astype(dtype)).astype(np.float64)
  return values + ulp * _signs(random, values.shape) * (values != 0)


def _signs(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
  """Return -1 and 1 at random; `choice` would take longer than all else here."""
  return np.array([-1.0, 1.0])[random.integers(2, size=shape)]
