"""Compile robot files with MuJoCo and read them into a `Model`. All here runs once, before tracing."""

import copy
import dataclasses
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import mujoco
import numpy as np
from mujoco import mjtBias, mjtCone, mjtDisableBit, mjtGain, mjtIntegrator, mjtSolver

from physics.model import Model
from physics.pairs import ContactPair, contact_pairs
from physics.support import UnsupportedModel, disabled, enum_name, label, unsupported

Source: TypeAlias = str | os.PathLike[str] | mujoco.MjSpec | mujoco.MjModel


INTEGRATORS = {
  "Euler": mjtIntegrator.mjINT_EULER,
  "RK4": mjtIntegrator.mjINT_RK4,
  "implicitfast": mjtIntegrator.mjINT_IMPLICITFAST,
}


def load_model(source: Source, *, integrator: Literal["Euler", "RK4", "implicitfast"] | None = None) -> Model:
  """Compile `source` (path, XML text, MjSpec or MjModel) and read it; the argument is left as it was.

  `integrator` replaces the one that the file asks for. Another solver than Newton is replaced,
  with a warning, since all solvers of MuJoCo share their solution. Sensors are left out, with a warning.
  Raises UnsupportedModel for what the engine lacks, ValueError for what MuJoCo's compiler refuses.
  """
  mj = _compile(source)
  if integrator is not None:
    mj.opt.integrator = INTEGRATORS[integrator]
  pairs = _pairs(mj)
  for element, feature in unsupported(mj, pairs):
    raise UnsupportedModel(f"{element}: {feature} is not supported")
  _warn(mj)
  mj.opt.solver = mjtSolver.mjSOL_NEWTON
  values = _fields(mj) | _flags(mj)
  for name in _switched_off(mj):
    values[name] = np.zeros_like(values[name]) if isinstance(values[name], np.ndarray) else 0.0
  for value in values.values():
    if isinstance(value, np.ndarray):
      value.setflags(write=False)
  return Model(**values, pairs=pairs, mj=mj)


def _compile(source: Source) -> mujoco.MjModel:
  """Return a compiled model that is nobody else's."""
  if isinstance(source, mujoco.MjModel):
    return copy.copy(source)
  if isinstance(source, mujoco.MjSpec):
    return source.copy().compile()
  text = os.fspath(source)
  if text.lstrip().startswith("<"):
    return mujoco.MjModel.from_xml_string(text)
  if not Path(text).is_file():
    raise FileNotFoundError(f"no model file {text!r}")
  return mujoco.MjModel.from_xml_path(text)


def _fields(mj: mujoco.MjModel) -> dict[str, Any]:
  """Read the fields of `Model` that MuJoCo stores, names included."""
  names = [field.name for field in dataclasses.fields(Model)]
  values = {n: _plain(getattr(part, n)) for part in (mj, mj.opt) for n in names if hasattr(part, n)}
  mocap = np.argsort(np.where(mj.body_mocapid < 0, mj.nbody, mj.body_mocapid))[: mj.nmocap]
  affine_gain = mj.actuator_gaintype == mjtGain.mjGAIN_AFFINE
  affine_bias = mj.actuator_biastype == mjtBias.mjBIAS_AFFINE
  return values | {
    "integrator": next(name for name, value in INTEGRATORS.items() if value == mj.opt.integrator),
    "elliptic": mj.opt.cone == mjtCone.mjCONE_ELLIPTIC,
    "body_weldid": np.where(mj.body_treeid < 0, 0, mj.body_weldid).astype(np.int64),
    "mocap_pos0": mj.body_pos[mocap],
    "mocap_quat0": mj.body_quat[mocap],
    "actuator_trnid": _plain(mj.actuator_trnid[:, 0]),
    "actuator_gainprm": mj.actuator_gainprm[:, :3]
    * np.stack([affine_gain | True, affine_gain, affine_gain], 1),
    "actuator_biasprm": mj.actuator_biasprm[:, :3] * affine_bias[:, None],
    "body_names": tuple(mj.body(i).name for i in range(mj.nbody)),
    "joint_names": tuple(mj.joint(i).name for i in range(mj.njnt)),
    "geom_names": tuple(mj.geom(i).name for i in range(mj.ngeom)),
    "tendon_names": tuple(mj.tendon(i).name for i in range(mj.ntendon)),
    "actuator_names": tuple(mj.actuator(i).name for i in range(mj.nu)),
  }


def _plain(value: Any) -> Any:
  """Copy an array of MuJoCo as float64, int64 or bool; pass its scalars on."""
  if not isinstance(value, np.ndarray):
    return value
  return value.astype(np.int64) if np.issubdtype(value.dtype, np.integer) else value.copy()


def _flags(mj: mujoco.MjModel) -> dict[str, bool]:
  """Read the disable flags that stay flags.

  Those that neither this nor `_switched_off` names change no result: island, midphase, nativeccd, multiccd,
  sensor, autoreset.
  """
  bit = mjtDisableBit
  return {
    "contact_enabled": not disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_CONTACT),
    "limit_enabled": not disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_LIMIT),
    "frictionloss_enabled": not disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_FRICTIONLOSS),
    "eulerdamp": not disabled(mj, bit.mjDSBL_EULERDAMP),
    "warmstart_enabled": not disabled(mj, bit.mjDSBL_WARMSTART),
    "refsafe": not disabled(mj, bit.mjDSBL_REFSAFE),
  }


def _switched_off(mj: mujoco.MjModel) -> Iterator[str]:
  """Yield the fields that are zero because a disable flag says so."""
  if disabled(mj, mjtDisableBit.mjDSBL_GRAVITY):
    yield "gravity"
  if disabled(mj, mjtDisableBit.mjDSBL_SPRING):
    yield from ("jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly")
  if disabled(mj, mjtDisableBit.mjDSBL_DAMPER):
    yield from ("dof_damping", "dof_dampingpoly", "tendon_damping", "tendon_dampingpoly")
    if disabled(mj, mjtDisableBit.mjDSBL_SPRING):
      yield from ("body_gravcomp", "density", "viscosity")
  if disabled(mj, mjtDisableBit.mjDSBL_CONSTRAINT, mjtDisableBit.mjDSBL_EQUALITY):
    yield "eq_active0"
  if disabled(mj, mjtDisableBit.mjDSBL_CLAMPCTRL):
    yield "actuator_ctrllimited"
  if disabled(mj, mjtDisableBit.mjDSBL_ACTUATION):
    yield from ("actuator_gainprm", "actuator_biasprm", "actuator_forcelimited", "jnt_actfrclimited")


def _pairs(mj: mujoco.MjModel) -> tuple[ContactPair, ...]:
  if disabled(mj, mjtDisableBit.mjDSBL_CONSTRAINT, mjtDisableBit.mjDSBL_CONTACT):
    return ()
  return contact_pairs(
    mj,
    filter_parent=not disabled(mj, mjtDisableBit.mjDSBL_FILTERPARENT),
    min_time_constant=0.0 if disabled(mj, mjtDisableBit.mjDSBL_REFSAFE) else 2 * mj.opt.timestep,
  )


def _warn(mj: mujoco.MjModel) -> None:
  """Say once what the engine replaces or leaves out without changing the motion."""
  if mj.opt.solver != mjtSolver.mjSOL_NEWTON:
    asked = enum_name(mjtSolver(mj.opt.solver)).upper()
    warnings.warn(f"the file asks for the {asked} solver: Newton finds the same solution", stacklevel=3)
  if mj.nsensor:
    names = ", ".join(label(mj, "sensor", i) for i in range(mj.nsensor))
    warnings.warn(f"sensors are not computed: {names}", stacklevel=3)
