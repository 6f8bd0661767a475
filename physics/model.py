"""Compile robot files with MuJoCo, read it into a `Model`; name what the engine lacks, before anything runs.

This and `parity.py` are the only files of `physics` that import MuJoCo. All here runs once, before tracing.
"""

import copy
import dataclasses
import difflib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import mujoco
import numpy as np
from mujoco import (
  mjtBias,
  mjtCone,
  mjtDisableBit,
  mjtDyn,
  mjtEnableBit,
  mjtGain,
  mjtGeom,
  mjtIntegrator,
  mjtObj,
  mjtSolver,
  mjtTrn,
)
from numpy.typing import NDArray

from physics.pairs import ContactPair, contact_pairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Source: TypeAlias = str | os.PathLike[str] | mujoco.MjSpec | mujoco.MjModel

SHAPES = (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_SPHERE, mjtGeom.mjGEOM_CAPSULE)
ACTUATOR_TYPES = {
  "trntype": (mjtTrn, (mjtTrn.mjTRN_JOINT,)),
  "dyntype": (mjtDyn, (mjtDyn.mjDYN_NONE,)),
  "gaintype": (mjtGain, (mjtGain.mjGAIN_FIXED, mjtGain.mjGAIN_AFFINE)),
  "biastype": (mjtBias, (mjtBias.mjBIAS_NONE, mjtBias.mjBIAS_AFFINE)),
}
# Enable flags that change the motion; energy, fwdinv and invdiscrete do not.
REFUSED_FLAGS = (
  mjtEnableBit.mjENBL_OVERRIDE,
  mjtEnableBit.mjENBL_SLEEP,
  mjtEnableBit.mjENBL_DIAGEXACT,
  mjtEnableBit.mjENBL_IPC,
  mjtEnableBit.mjENBL_SPECULATIVE,
)
MUST_BE_ZERO = {  # field: (kind of element, feature that a number other than zero asks for)
  "jnt_stiffnesspoly": ("joint", "nonlinear stiffness"),
  "jnt_springyield": ("joint", "springyield (a plastic spring)"),
  "dof_dampingpoly": ("joint", "nonlinear damping"),
  "body_gravcomp": ("body", "gravcomp"),
  "geom_adhesion": ("geom", "adhesion"),
  "pair_adhesion": ("pair", "adhesion"),
  "geom_surfacevel": ("geom", "surfacevel"),
  "tendon_limited": ("tendon", "a tendon's limit"),
  "tendon_stiffness": ("tendon", "a tendon's stiffness"),
  "tendon_stiffnesspoly": ("tendon", "a tendon's stiffness"),
  "tendon_damping": ("tendon", "a tendon's damping"),
  "tendon_dampingpoly": ("tendon", "a tendon's damping"),
  "tendon_frictionloss": ("tendon", "a tendon's frictionloss"),
  "tendon_armature": ("tendon", "a tendon's armature"),
  "actuator_armature": ("actuator", "an actuator's armature"),
  "actuator_damping": ("actuator", "an actuator's damping"),
  "actuator_dampingpoly": ("actuator", "an actuator's damping"),
  "actuator_delay": ("actuator", "delay"),
  "actuator_history": ("actuator", "a history buffer"),
}


class UnsupportedModel(ValueError):
  """A model asks for what this engine does not compute; the message names the element and the feature."""


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """The facts of a compiled model that the engine uses: MuJoCo's names, shapes, order and units.

  Arrays are read-only. Disable flags of the file are folded into the numbers where they can be (no gravity is
  `gravity == 0`, no springs is `jnt_stiffness == 0`, ...); the rest are the flags at the end.
  """

  nq: int
  nv: int
  nu: int
  nbody: int
  njnt: int
  ngeom: int

  timestep: float  # [s]
  gravity: Floats  # [3] [m/s^2]
  iterations: int
  impratio: float

  qpos0: Floats
  qpos_spring: Floats

  body_parentid: Ints
  body_rootid: Ints
  body_weldid: Ints
  body_treeid: Ints
  body_jntnum: Ints
  body_jntadr: Ints
  body_dofnum: Ints
  body_dofadr: Ints
  body_pos: Floats
  body_quat: Floats
  body_ipos: Floats
  body_iquat: Floats
  body_mass: Floats
  body_inertia: Floats
  body_invweight0: Floats

  jnt_type: Ints
  jnt_qposadr: Ints
  jnt_dofadr: Ints
  jnt_bodyid: Ints
  jnt_pos: Floats
  jnt_axis: Floats
  jnt_stiffness: Floats
  jnt_limited: Bools
  jnt_range: Floats
  jnt_margin: Floats
  jnt_solref: Floats
  jnt_solimp: Floats
  jnt_actfrclimited: Bools
  jnt_actfrcrange: Floats

  dof_bodyid: Ints
  dof_jntid: Ints
  dof_parentid: Ints
  dof_armature: Floats
  dof_damping: Floats
  dof_frictionloss: Floats
  dof_invweight0: Floats
  dof_solref: Floats
  dof_solimp: Floats

  geom_type: Ints
  geom_bodyid: Ints
  geom_pos: Floats
  geom_quat: Floats
  geom_size: Floats
  geom_rbound: Floats

  actuator_trnid: Ints  # [nu] joint that the actuator drives
  actuator_gear: Floats  # [nu, 6] moment arms: 1 of a scalar, 3 of a ball, 6 of a free joint
  actuator_gainprm: Floats  # [nu, 3] gain = (1, length, velocity) . gainprm
  actuator_biasprm: Floats  # [nu, 3] bias = (1, length, velocity) . biasprm
  actuator_ctrllimited: Bools
  actuator_ctrlrange: Floats
  actuator_forcelimited: Bools
  actuator_forcerange: Floats

  body_names: tuple[str, ...]
  joint_names: tuple[str, ...]
  geom_names: tuple[str, ...]
  actuator_names: tuple[str, ...]

  eulerdamp: bool  # joint damping enters the velocity update implicitly
  contact_enabled: bool
  limit_enabled: bool
  frictionloss_enabled: bool
  warmstart_enabled: bool
  refsafe: bool  # time constants of constraints are at least two time steps

  pairs: tuple[ContactPair, ...]  # all geom pairs that can collide
  mj: mujoco.MjModel  # the compiled model itself: for parity tests and people

  def body_id(self, name: str) -> int:
    """Return the id of the body called `name`; KeyError names the nearest."""
    return _find(self.body_names, "body", name)

  def joint_id(self, name: str) -> int:
    """Return the id of the joint called `name`; KeyError names the nearest."""
    return _find(self.joint_names, "joint", name)

  def geom_id(self, name: str) -> int:
    """Return the id of the geom called `name`; KeyError names the nearest."""
    return _find(self.geom_names, "geom", name)

  def actuator_id(self, name: str) -> int:
    """Return the id of the actuator called `name`; KeyError names the nearest."""
    return _find(self.actuator_names, "actuator", name)


def load_model(source: Source, *, integrator: Literal["Euler"] | None = None) -> Model:
  """Compile `source` (path, XML text, MjSpec or MjModel) and read it; the argument is left as it was.

  `integrator="Euler"` replaces the integrator that the file asks for. Another solver than Newton is replaced,
  with a warning, since all solvers of MuJoCo share their solution. Sensors are left out, with a warning.
  Raises UnsupportedModel for what the engine lacks, ValueError for what MuJoCo's compiler refuses.
  """
  mj = _compile(source)
  if integrator is not None:
    mj.opt.integrator = mjtIntegrator.mjINT_EULER
  pairs = _pairs(mj)
  for element, feature in (*_unsupported(mj), *_unsupported_contacts(mj, pairs)):
    raise UnsupportedModel(f"{element}: {feature} is not supported")
  _warn(mj)
  mj.opt.solver = mjtSolver.mjSOL_NEWTON
  values = _fields(mj) | _flags(mj)
  for name in _switched_off(mj):
    values[name] = np.zeros_like(values[name])
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
  affine_gain = mj.actuator_gaintype == mjtGain.mjGAIN_AFFINE
  affine_bias = mj.actuator_biastype == mjtBias.mjBIAS_AFFINE
  return values | {
    "actuator_trnid": _plain(mj.actuator_trnid[:, 0]),
    "actuator_gainprm": mj.actuator_gainprm[:, :3]
    * np.stack([affine_gain | True, affine_gain, affine_gain], 1),
    "actuator_biasprm": mj.actuator_biasprm[:, :3] * affine_bias[:, None],
    "body_names": tuple(mj.body(i).name for i in range(mj.nbody)),
    "joint_names": tuple(mj.joint(i).name for i in range(mj.njnt)),
    "geom_names": tuple(mj.geom(i).name for i in range(mj.ngeom)),
    "actuator_names": tuple(mj.actuator(i).name for i in range(mj.nu)),
  }


def _plain(value: Any) -> Any:
  """Copy an array of MuJoCo as float64, int64 or bool; pass its scalars on."""
  if not isinstance(value, np.ndarray):
    return value
  return value.astype(np.int64) if np.issubdtype(value.dtype, np.integer) else value.copy()


def _disabled(mj: mujoco.MjModel, *bits: mjtDisableBit) -> bool:
  return any(mj.opt.disableflags & bit for bit in bits)


def _flags(mj: mujoco.MjModel) -> dict[str, bool]:
  """Read the disable flags that stay flags.

  Those that neither this nor `_switched_off` names change no result: equality (there are none), island,
  midphase, nativeccd, multiccd, sensor, autoreset.
  """
  bit = mjtDisableBit
  return {
    "contact_enabled": not _disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_CONTACT),
    "limit_enabled": not _disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_LIMIT),
    "frictionloss_enabled": not _disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_FRICTIONLOSS),
    "eulerdamp": not _disabled(mj, bit.mjDSBL_EULERDAMP),
    "warmstart_enabled": not _disabled(mj, bit.mjDSBL_WARMSTART),
    "refsafe": not _disabled(mj, bit.mjDSBL_REFSAFE),
  }


def _switched_off(mj: mujoco.MjModel) -> Iterator[str]:
  """Yield the fields that are zero because a disable flag says so."""
  if _disabled(mj, mjtDisableBit.mjDSBL_GRAVITY):
    yield "gravity"
  if _disabled(mj, mjtDisableBit.mjDSBL_SPRING):
    yield "jnt_stiffness"
  if _disabled(mj, mjtDisableBit.mjDSBL_DAMPER):
    yield "dof_damping"
  if _disabled(mj, mjtDisableBit.mjDSBL_CLAMPCTRL):
    yield "actuator_ctrllimited"
  if _disabled(mj, mjtDisableBit.mjDSBL_ACTUATION):
    yield from ("actuator_gainprm", "actuator_biasprm", "actuator_forcelimited", "jnt_actfrclimited")


def _pairs(mj: mujoco.MjModel) -> tuple[ContactPair, ...]:
  if _disabled(mj, mjtDisableBit.mjDSBL_CONSTRAINT, mjtDisableBit.mjDSBL_CONTACT):
    return ()
  return contact_pairs(
    mj,
    filter_parent=not _disabled(mj, mjtDisableBit.mjDSBL_FILTERPARENT),
    min_time_constant=0.0 if _disabled(mj, mjtDisableBit.mjDSBL_REFSAFE) else 2 * mj.opt.timestep,
  )


def _warn(mj: mujoco.MjModel) -> None:
  """Say once what the engine replaces or leaves out without changing the motion."""
  if mj.opt.solver != mjtSolver.mjSOL_NEWTON:
    asked = _enum_name(mjtSolver(mj.opt.solver)).upper()
    warnings.warn(f"the file asks for the {asked} solver: Newton finds the same solution", stacklevel=3)
  if mj.nsensor:
    names = ", ".join(_label(mj, "sensor", i) for i in range(mj.nsensor))
    warnings.warn(f"sensors are not computed: {names}", stacklevel=3)


def _find(names: tuple[str, ...], kind: str, name: str) -> int:
  if name in names:
    return names.index(name)
  near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
  raise KeyError(f"no {kind} {name!r}" + (f"; the nearest is {near[0]!r}" if near else ""))


def _label(mj: mujoco.MjModel, kind: str, index: int) -> str:
  """Return how messages name an element: its name, or its number if it has none."""
  name = mujoco.mj_id2name(mj, getattr(mjtObj, f"mjOBJ_{kind.upper()}"), index)
  return f"{kind} {name!r}" if name else f"{kind} {index}"


def _unsupported(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  """Yield (element, feature) for all that the engine lacks, contacts excepted."""
  yield from _unsupported_options(mj)
  constrained = not _disabled(mj, mjtDisableBit.mjDSBL_CONSTRAINT, mjtDisableBit.mjDSBL_EQUALITY)
  for kind, count in (("flex", mj.nflex), ("plugin", mj.nplugin), ("equality", mj.neq if constrained else 0)):
    if count:
      yield _label(mj, kind, 0), f"a model with {kind} elements"
  for field, (kind, feature) in MUST_BE_ZERO.items():
    for i, value in enumerate(getattr(mj, field)):
      if np.any(value):
        yield _label(mj, kind, mj.dof_jntid[i] if field.startswith("dof_") else i), feature
  for i in np.flatnonzero(mj.body_mocapid >= 0).tolist():
    yield _label(mj, "body", i), "mocap"
  for i in np.flatnonzero(mj.jnt_limited).tolist():
    if _mixes_formats(mj.jnt_solref[i]):
      yield _label(mj, "joint", i), "solreflimit of mixed signs"
  for i in np.flatnonzero(mj.dof_frictionloss).tolist():
    if _mixes_formats(mj.dof_solref[i]):
      yield _label(mj, "joint", mj.dof_jntid[i]), "solreffriction of mixed signs"
  yield from _unsupported_actuators(mj)


def _unsupported_options(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  option = mj.opt
  if option.integrator != mjtIntegrator.mjINT_EULER:
    name = _enum_name(mjtIntegrator(option.integrator))
    yield "option", f"integrator {name} (which load_model(..., integrator='Euler') replaces)"
  if option.cone != mjtCone.mjCONE_PYRAMIDAL:
    yield "option", "the elliptic cone"
  if option.noslip_iterations:
    yield "option", "the noslip solver"
  if option.density or option.viscosity:
    yield "option", "a fluid (density, viscosity)"
  if any(option.disableactuator >> group & 1 for group in mj.actuator_group):
    yield "option", "actuatorgroupdisable"
  for flag in REFUSED_FLAGS:
    if option.enableflags & flag:
      yield "option", f"flag {_enum_name(flag)}"


def _unsupported_actuators(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  for i in range(mj.nactuator):
    for field, (kind, supported) in ACTUATOR_TYPES.items():
      value = int(getattr(mj, f"actuator_{field}")[i])
      if value not in supported:
        yield _label(mj, "actuator", i), f"{field} {_enum_name(kind(value))}"
    if mj.actuator_ctrlnum[i] != 1:
      yield _label(mj, "actuator", i), f"an actuator with {mj.actuator_ctrlnum[i]} controls"


def _unsupported_contacts(mj: mujoco.MjModel, pairs: tuple[ContactPair, ...]) -> Iterator[tuple[str, str]]:
  for pair in pairs:
    labels = [_label(mj, "geom", geom) for geom in (pair.geom1, pair.geom2)]
    for geom, label in zip((pair.geom1, pair.geom2), labels, strict=True):
      if int(mj.geom_type[geom]) not in SHAPES:
        yield label, f"collision of a {_enum_name(mjtGeom(mj.geom_type[geom]))}"
    if pair.condim not in (1, 3):
      yield " against ".join(labels), f"condim {pair.condim}"
    if _mixes_formats(pair.solref):
      yield " against ".join(labels), "solref of mixed signs"


def _mixes_formats(solref: Floats) -> bool:
  """Return whether only one number is negated stiffness or damping, so that MuJoCo would use its default."""
  return bool((solref[0] > 0) != (solref[1] > 0))


def _enum_name(member: Any) -> str:
  """Return how MJCF calls an enumeration's member: mjTRN_SITE is 'site'."""
  return str(member.name).split("_", 1)[1].lower()
