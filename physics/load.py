"""The loader of robot files: MuJoCo compiles a file, and a `Model` is read from the result."""

import copy
import dataclasses
import math
import os
import warnings
from collections.abc import Iterator, Sequence
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
  mjtEq,
  mjtGain,
  mjtGeom,
  mjtSameFrame,
  mjtSolver,
  mjtTrn,
)

from physics.actuator.motor import ActivationParams, WindingParams
from physics.dynamics.bodies import LONG
from physics.mesh_files import no_file
from physics.model.model import ACTIVATIONS, Floats, Ints, Model
from physics.model_size import check_geoms, check_size
from physics.support import (
  INTEGRATORS,
  check_support,
  disabled,
  enum_name,
  label,
  one_line,
  only_drives,
  unsupported_sensors,
)
from physics.urdf import ENDINGS as URDF_ENDINGS
from physics.urdf import read_urdf
from physics.vary.variable import check_varied

Source: TypeAlias = str | os.PathLike[str] | mujoco.MjSpec | mujoco.MjModel


# A kernel of more than one of these is built for about a minute. The entries count where no loops are over
# bodies: 54 hinges between 18 bodies in a row have 1,485.
MANY_ENTRIES, MANY_GEOMS = 1500, 3000
MANY_VERTICES = 50_000  # of hulls that collide: a G1 with all its meshes has 27,000; 655,000 take minutes


def load_model(
  source: Source,
  *,
  integrator: Literal["Euler", "RK4", "implicitfast"] | None = None,
  vary: Sequence[str] = (),
  unsupported: Literal["error", "warn"] = "error",
) -> Model:
  """Compile `source` (path, XML text, MjSpec or MjModel) and read it; the argument is left as it was.

  A path that ends with `.urdf` is read by `read_urdf`, which has options.

  `integrator` replaces the file's. `vary` names fields (of `variable.VARIABLE`) whose values differ between
  the environments of a simulation. If the file asks for another solver, Newton replaces it, with a warning:
  all solvers of MuJoCo have the same solution. Warnings name sensors that stay zero, and the flag sleep,
  which has no effect. With `unsupported="warn"` the model lacks what the engine lacks: pairs of geoms that it
  cannot collide, and the features that `support.leave_out` names. A warning names each, and `Model.left_out`
  lists them. Raises UnsupportedModel for features that the engine lacks, ValueError for errors of MuJoCo's
  compiler and for fields that cannot vary.
  """
  _check(integrator, vary, unsupported)
  mj, name = compile_model(source), _name(source)
  mj.geom_fluid[mj.geom_type == mjtGeom.mjGEOM_PLANE] = 0.0  # nan, but planes stand still
  check_geoms(mj.ngeom)
  if integrator is not None:
    mj.opt.integrator = INTEGRATORS[integrator]
  support = check_support(mj, name, vary, leave_out_others=unsupported == "warn")
  for warning in (*_long_builds(mj, name), *support.warnings):
    warnings.warn(warning, stacklevel=2)
  mj.opt.solver = mjtSolver.mjSOL_NEWTON
  mj.opt.enableflags &= ~mjtEnableBit.mjENBL_SLEEP.value
  values = _fields(mj) | _same_frames(mj) | _flags(mj)
  for field in _switched_off(mj):
    values[field] = np.zeros_like(values[field]) if isinstance(values[field], np.ndarray) else 0.0
  for value in values.values():
    if isinstance(value, np.ndarray):
      value.setflags(write=False)
  return Model(**values, varied=check_varied(vary), pairs=support.pairs, left_out=support.left_out, mj=mj)


def _check(integrator: Any, vary: Any, unsupported: Any) -> None:
  """Raise ValueError for arguments that are no choice."""
  for name, value, choices in (
    ("integrator", integrator, (None, *INTEGRATORS)),
    ("unsupported", unsupported, ("error", "warn")),
  ):
    if value not in choices:
      raise ValueError(f"{name}={value!r}: write one of {', '.join(map(repr, choices))}")
  if isinstance(vary, str):
    raise ValueError(f"vary={vary!r}: write a list of fields, [{vary!r}]")


def compile_model(source: Source) -> mujoco.MjModel:
  """Return a compiled model that no other code holds."""
  if isinstance(source, mujoco.MjModel):
    return copy.copy(source)
  if not isinstance(source, str | os.PathLike | mujoco.MjSpec):
    raise ValueError(f"a model is a file or MJCF text, not {source!r}: give its path")
  try:
    return read_spec(source).compile()
  except (ValueError, RecursionError) as error:  # the latter of files that include others without end
    raise ValueError(_name(source) + one_line(error).removeprefix(_name(source))) from error


def read_spec(source: Source) -> mujoco.MjSpec:
  """Return a model before it is compiled, which no other code holds."""
  if isinstance(source, mujoco.MjSpec):
    return source.copy()
  if isinstance(source, mujoco.MjModel):
    raise ValueError("a compiled model has no MJCF; give its file or an MjSpec")
  text = os.fspath(source)
  is_text = text.lstrip().startswith("<")
  if not is_text and not Path(text).is_file():
    raise no_file(Path(text))
  if not is_text and Path(text).suffix.lower() in URDF_ENDINGS:
    return read_urdf(text)
  folder = Path() if is_text else Path(text).parent
  check_size(text if is_text else Path(text).read_text(errors="ignore"), folder)
  return mujoco.MjSpec.from_string(text) if is_text else mujoco.MjSpec.from_file(text)


def _long_builds(mj: mujoco.MjModel, name: str) -> Iterator[str]:
  """Yield a warning for each part of a model with a kernel that takes long to build."""
  if (mj.nM > MANY_ENTRIES and mj.nbody - 1 <= LONG) or mj.ngeom > MANY_GEOMS:
    size = f"{mj.nv} degrees of freedom, {mj.nM} entries of the mass matrix and {mj.ngeom} geoms"
    yield f"{name}a model of {size}: to build its kernel takes a minute or more"
  hulls = _hull_sizes(mj)
  if hulls.sum() > MANY_VERTICES:
    has = f"has {hulls.max():,} of {hulls.sum():,} vertices of hulls, which takes minutes to build"
    remedy = 'write maxhullvert="100", or mesh.maxhullvert = 100 for the meshes of an MjSpec'
    yield f"{name}{label(mj, 'mesh', int(hulls.argmax()))} {has}: {remedy}"


def _hull_sizes(mj: mujoco.MjModel) -> Ints:
  """Return the numbers of vertices of the hulls of meshes [nmesh]; of those that touch nothing, zero."""
  sizes = np.zeros(mj.nmesh, np.int64)
  touches = (mj.geom_type == mjtGeom.mjGEOM_MESH) & ((mj.geom_contype != 0) | (mj.geom_conaffinity != 0))
  for mesh in np.unique(mj.geom_dataid[touches]):
    if mj.mesh_graphadr[mesh] >= 0:
      sizes[mesh] = mj.mesh_graph[mj.mesh_graphadr[mesh]]
  return sizes


def _name(source: Source) -> str:
  """Return the prefix of messages about a model: its file, or "MJCF" where there is none, and a colon."""
  is_file = isinstance(source, str | os.PathLike) and not os.fspath(source).lstrip().startswith("<")
  return f"{source}: " if is_file else "MJCF: "


def _fields(mj: mujoco.MjModel) -> dict[str, Any]:
  """Read the fields of `Model` that MuJoCo stores, names included."""
  names = [field.name for field in dataclasses.fields(Model)]
  values = {n: _plain(getattr(part, n)) for part in (mj, mj.opt) for n in names if hasattr(part, n)}
  mocap = np.argsort(np.where(mj.body_mocapid < 0, mj.nbody, mj.body_mocapid))[: mj.nmocap]
  return values | {
    "integrator": next(name for name, value in INTEGRATORS.items() if value == mj.opt.integrator),
    "cone": enum_name(mjtCone(mj.opt.cone)),
    "body_weldid": np.where(mj.body_treeid < 0, 0, mj.body_weldid).astype(np.int64),
    "eq_keeps_pose": (mj.eq_type == mjtEq.mjEQ_WELD) & (mj.eq_data[:, 11] != 0),
    "mocap_pos0": mj.body_pos[mocap],
    "mocap_quat0": mj.body_quat[mocap],
    "cam_focal": np.array([_focal_lengths(mj, camera) for camera in range(mj.ncam)]).reshape(mj.ncam, 2),
    "sensor_interval": mj.sensor_interval * (mj.sensor_history[:, :1] > 0),
    **_plastic_fields(mj),
    **_actuator_fields(mj),
    **_added_by_actuators(mj),
    "body_names": tuple(mj.body(i).name for i in range(mj.nbody)),
    "joint_names": tuple(mj.joint(i).name for i in range(mj.njnt)),
    "geom_names": tuple(mj.geom(i).name for i in range(mj.ngeom)),
    "site_names": tuple(mj.site(i).name for i in range(mj.nsite)),
    "tendon_names": tuple(mj.tendon(i).name for i in range(mj.ntendon)),
    "actuator_names": tuple(mj.actuator(i).name for i in range(mj.nactuator)),
    "sensor_names": tuple(mj.sensor(i).name for i in range(mj.nsensor)),
    "key_names": tuple(mj.key(i).name for i in range(mj.nkey)),
    "sensor_supported": np.array([not lacking for lacking in unsupported_sensors(mj)], dtype=bool),
  }


def _same_frames(mj: mujoco.MjModel) -> dict[str, Floats]:
  """Return the frames in bodies as MuJoCo takes them: those that coincide but for rounding are one."""
  same, identity = mjtSameFrame, (1.0, 0.0, 0.0, 0.0)
  fields: dict[str, Floats] = {}
  for kind, bodies in (("body_i", np.arange(mj.nbody)), ("geom_", mj.geom_bodyid), ("site_", mj.site_bodyid)):
    pos, quat = getattr(mj, f"{kind}pos").copy(), getattr(mj, f"{kind}quat").copy()
    frames = getattr(mj, f"{kind[:4]}_sameframe")
    for i, (body, frame) in enumerate(zip(bodies.tolist(), map(same, frames.tolist()), strict=True)):
      if frame in (same.mjSAMEFRAME_BODY, same.mjSAMEFRAME_INERTIA):
        pos[i] = 0.0 if frame == same.mjSAMEFRAME_BODY else mj.body_ipos[body]
      if frame in (same.mjSAMEFRAME_BODY, same.mjSAMEFRAME_BODYROT):
        quat[i] = identity
      if frame in (same.mjSAMEFRAME_INERTIA, same.mjSAMEFRAME_INERTIAROT):
        quat[i] = mj.body_iquat[body]
    fields |= {f"{kind}pos": pos, f"{kind}quat": quat}
  return fields


def _focal_lengths(mj: mujoco.MjModel, camera: int) -> list[float]:
  """Return a camera's focal lengths [2] [pixels], of its lens or from its field of view."""
  if mj.cam_sensorsize[camera].all():  # MuJoCo's division, too, is of float32 numbers
    resolution = mj.cam_resolution[camera].astype(np.float32)
    return (mj.cam_intrinsic[camera, :2] / mj.cam_sensorsize[camera] * resolution).tolist()
  return [0.5 / math.tan(math.radians(mj.cam_fovy[camera]) / 2.0) * mj.cam_resolution[camera, 1]] * 2


def _plastic_fields(mj: mujoco.MjModel) -> dict[str, Any]:
  """Return where plastic springs rest at first, and their addresses; without springs, nothing yields."""
  elastic = disabled(mj, mjtDisableBit.mjDSBL_SPRING)
  fields = {name: _plain(getattr(mj, name)) for name in ("jnt_plasticadr", "tendon_plasticadr")}
  return {name: np.full_like(values, -1) if elastic else values for name, values in fields.items()} | {
    "plastic0": mujoco.MjData(mj).plastic.copy() if mj.nplastic else np.zeros(0)
  }


def _actuator_fields(mj: mujoco.MjModel) -> dict[str, Any]:
  """Derive the facts of actuators that MuJoCo does not store."""
  in_group = (mj.actuator_group >= 0) & (mj.actuator_group <= 30)
  disabled_group = mj.opt.disableactuator >> np.clip(mj.actuator_group, 0, 30) & 1
  servo = (mj.actuator_gaintype == mjtGain.mjGAIN_FIXED) & (mj.actuator_biastype == mjtBias.mjBIAS_AFFINE)
  servo &= mj.actuator_gainprm[:, 0] == -mj.actuator_biasprm[:, 1]
  servo &= mj.actuator_dyntype != mjtDyn.mjDYN_MUSCLE
  slots = [_slots(mj, actuator) for actuator in range(mj.nactuator)]
  return {
    "actuator_enabled": ~(in_group & (disabled_group == 1)),
    "actuator_is_servo": servo,
    "actuator_slots": np.array(slots, np.int64).reshape(mj.nactuator, len(ACTIVATIONS)),
  }


def _slots(mj: mujoco.MjModel, actuator: int) -> list[int]:
  """Return the slot of each of ACTIVATIONS among an actuator's activations, -1: it has none."""
  dynprm, gainprm = mj.actuator_dynprm[actuator], mj.actuator_gainprm[actuator]
  sources = {"filtered": mj.actuator_actnum[actuator]}  # positive where the activation exists
  if mj.actuator_dyntype[actuator] == mjtDyn.mjDYN_PID:
    sources = {"setpoint": dynprm[1], "integral": gainprm[0]}
  if mj.actuator_dyntype[actuator] == mjtDyn.mjDYN_DCMOTOR:
    dynamics, winding = ActivationParams(*dynprm[:9]), WindingParams(*gainprm[:8])
    sources = {"setpoint": dynamics.slew_rate, "integral": winding.ki, "bristle": dynamics.stiffness}
    sources |= {"temperature": dynamics.thermal_resistance, "current": dynamics.electric_time}
  present = [sources.get(name, 0.0) > 0.0 for name in ACTIVATIONS]
  return [sum(present[:k]) if exists else -1 for k, exists in enumerate(present)]


def _added_by_actuators(mj: mujoco.MjModel) -> dict[str, Floats]:
  """Return damping and armature of joints and tendons, including their actuators'."""
  parts = ("damping", "dampingpoly", "armature")
  names = [f"{kind}_{part}" for kind in ("dof", "tendon") for part in parts]
  fields = {name: getattr(mj, name).copy() for name in names}
  for actuator, kind in enumerate(map(mjtTrn, mj.actuator_trntype.tolist())):
    target, gear = mj.actuator_trnid[actuator, 0], mj.actuator_gear[mj.actuator_outadr[actuator], 0]
    for part in parts:
      added = gear**2 * getattr(mj, f"actuator_{part}")[actuator]
      if kind == mjtTrn.mjTRN_TENDON:
        fields[f"tendon_{part}"][target] += added
      elif kind in (mjtTrn.mjTRN_JOINT, mjtTrn.mjTRN_JOINTINPARENT):
        fields[f"dof_{part}"][mj.dof_jntid == target] += added
  known = {field.name for field in dataclasses.fields(Model)}
  return {name: value for name, value in fields.items() if name in known}


def _plain(value: Any) -> Any:
  """Copy an array of MuJoCo as float64, int64 or bool; pass its scalars on."""
  if not isinstance(value, np.ndarray):
    return value
  kinds = ((np.integer, np.int64), (np.floating, np.float64), (np.bool_, np.bool_))
  return next(value.astype(kind) for family, kind in kinds if np.issubdtype(value.dtype, family))


def _flags(mj: mujoco.MjModel) -> dict[str, bool]:
  """Read the disable flags that stay flags.

  Flags that are neither here nor in `_switched_off` change no result: island, midphase, autoreset.
  """
  bit = mjtDisableBit
  return {
    "contact_enabled": not disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_CONTACT),
    "limit_enabled": not disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_LIMIT),
    "frictionloss_enabled": not disabled(mj, bit.mjDSBL_CONSTRAINT, bit.mjDSBL_FRICTIONLOSS),
    "actuation_enabled": not disabled(mj, bit.mjDSBL_ACTUATION),
    "passive_enabled": not (disabled(mj, bit.mjDSBL_SPRING) and disabled(mj, bit.mjDSBL_DAMPER)),
    "eulerdamp": not disabled(mj, bit.mjDSBL_EULERDAMP) and not only_drives(mj),
    "warmstart_enabled": not disabled(mj, bit.mjDSBL_WARMSTART),
    "multiccd": not disabled(mj, bit.mjDSBL_MULTICCD),
    "refsafe": not disabled(mj, bit.mjDSBL_REFSAFE),
  }


def _switched_off(mj: mujoco.MjModel) -> Iterator[str]:
  """Yield the fields that a disable flag sets to zero."""
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
  if disabled(mj, mjtDisableBit.mjDSBL_SENSOR):
    yield "sensor_supported"
