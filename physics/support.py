"""Unsupported features of a robot file, named with the element before anything runs, and warnings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import mujoco
import numpy as np
from mujoco import (
  mjtBias,
  mjtDisableBit,
  mjtDyn,
  mjtEnableBit,
  mjtEq,
  mjtGain,
  mjtGeom,
  mjtIntegrator,
  mjtObj,
  mjtSensor,
  mjtSleepPolicy,
  mjtSolver,
  mjtTrn,
  mjtWrap,
)

from physics.collision.narrow import can_collide
from physics.dynamics.camera_frame import TRACKCOM
from physics.model.model import FEW_ITERATIONS
from physics.model.pairs import OVERRIDE, ContactPair, contact_pairs, keep_apart, mixes_formats
from physics.sensor import READINGS
from physics.sensor.distance import DISTANCES, can_measure, kinds_of, measured_pairs
from physics.sensor.kinds import Kind
from physics.sensor.rangefinder import FIELDS
from physics.trace.trace import Scalar
from physics.vary.variable import OF_PAIRS

INTEGRATORS = {
  "Euler": mjtIntegrator.mjINT_EULER,
  "RK4": mjtIntegrator.mjINT_RK4,
  "implicitfast": mjtIntegrator.mjINT_IMPLICITFAST,
}
EQUALITIES = (mjtEq.mjEQ_CONNECT, mjtEq.mjEQ_WELD, mjtEq.mjEQ_JOINT, mjtEq.mjEQ_TENDON)
ACTUATOR_TYPES = {
  "trntype": (mjtTrn, ("joint", "jointinparent", "slidercrank", "tendon", "site", "body")),
  "dyntype": (mjtDyn, ("none", "integrator", "filter", "filterexact", "muscle", "pid", "dcmotor")),
  "gaintype": (mjtGain, ("fixed", "affine", "muscle", "pid", "dcmotor")),
  "biastype": (mjtBias, ("none", "affine", "muscle", "dcmotor")),
}
# Enable flags that change the motion; energy, fwdinv and invdiscrete do not, and sleep hardly does.
REFUSED_FLAGS = (mjtEnableBit.mjENBL_DIAGEXACT, mjtEnableBit.mjENBL_IPC, mjtEnableBit.mjENBL_SPECULATIVE)
POSITIVE = {"timestep": 0.005, "impratio": 1.0}  # options, with an example
NOT_NEGATIVE = ("iterations", "ls_iterations", "noslip_iterations", "ccd_iterations", "density", "viscosity")
UNUSUAL = {  # negative numbers that MuJoCo takes too, and their effects
  "dof_armature": "it takes inertia away, and the rest has to be positive",
  "dof_damping": "it drives the joint",
  "tendon_damping": "it drives the tendon",
  "geom_gap": "contacts begin so much below the margin, at once with their whole force",
  "pair_gap": "contacts begin so much below the margin, at once with their whole force",
}
# Kinds of elements by the prefixes of their fields in MjModel, one row each.
ELEMENTS = {"jnt": "joint", "dof": "joint", "eq": "equality"} | {
  kind: kind
  for kind in ("body", "geom", "site", "mesh", "hfield", "pair", "tendon", "actuator", "sensor", "key")
}
SOLREFS = {  # field: (field that says where it is used, name in MJCF)
  "jnt_solref": ("jnt_limited", "solreflimit"),
  "dof_solref": ("dof_frictionloss", "solreffriction"),
  "tendon_solref_lim": ("tendon_limited", "solreflimit"),
  "tendon_solref_fri": ("tendon_frictionloss", "solreffriction"),
  "eq_solref": ("eq_active0", "solref"),
}

STIFF = 2e5  # stiffness over inertia, above which rounding makes a search of a few iterations run away


class UnsupportedModel(ValueError):
  """The error for a model that needs what the engine lacks; its message names element and feature."""


@dataclass(frozen=True)
class Support:
  """The part of a compiled model that the engine simulates."""

  pairs: tuple[ContactPair, ...]  # of geoms that collide
  left_out: tuple[str, ...]  # elements, each with the feature that the engine lacks
  warnings: tuple[str, ...]


def check_support(mj: mujoco.MjModel, name: str, vary: Sequence[str], *, leave_out_others: bool) -> Support:
  """Return what the engine simulates of a compiled model; messages begin with `name`.

  With `leave_out_others` features that the engine lacks are removed from `mj`, as `leave_out` does it. Raises
  UnsupportedModel for the others and for fields of `vary` that nothing could follow, ValueError for numbers
  that no simulation can have.
  """
  for element, fault in chain(_impossible(mj), _nonfinite(mj)):
    raise ValueError(f"{name}{element}: {fault}")
  left_out: tuple[str, ...] = ()
  if not leave_out_others:
    _refuse(name, _unsupported_elements(mj))  # before the pairs, which may be many
  pairs = _pairs(mj)
  if leave_out_others:
    left_out = tuple(f"{element}: {feature}" for element, feature in _unsupported(mj, pairs))
    pairs = leave_out(mj, pairs)
  _refuse(name, chain(_unsupported(mj, pairs), _unsupported_to_vary(mj, vary)))
  remarks = [f"{name}{part} is not supported and left out" for part in left_out]
  return Support(pairs, left_out, (*remarks, *_remarks(mj, pairs)))


def _refuse(name: str, features: Iterable[tuple[str, str]]) -> None:
  """Raise if a model needs features that the engine lacks."""
  for element, feature in features:
    raise UnsupportedModel(f"{name}{element}: {feature} is not supported")


def _pairs(mj: mujoco.MjModel) -> tuple[ContactPair, ...]:
  if disabled(mj, mjtDisableBit.mjDSBL_CONSTRAINT, mjtDisableBit.mjDSBL_CONTACT):
    return ()
  return contact_pairs(mj, filter_parent=not disabled(mj, mjtDisableBit.mjDSBL_FILTERPARENT))


def disabled(mj: mujoco.MjModel, *bits: mjtDisableBit) -> bool:
  """Return whether any of these disable flags is set."""
  return any(mj.opt.disableflags & bit for bit in bits)


def _impossible(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  """Yield (element, fault) for each number that no simulation can have."""
  for name, example in POSITIVE.items():
    if getattr(mj.opt, name) <= 0:
      yield "option", f"{name}={getattr(mj.opt, name):g} is not positive: write one, such as {example:g}"
  for name in NOT_NEGATIVE:
    if getattr(mj.opt, name) < 0:
      yield "option", f"{name}={getattr(mj.opt, name):g} is negative: leave it out"
  for field in ("dof_frictionloss", "tendon_frictionloss"):  # the cost would have no least value
    for element, number in _negative(mj, field):
      yield element, f"frictionloss={number:g} is negative: leave it out"


def _unusual(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  """Yield (element, attribute and effect) for each negative number that may be a mistake."""
  for field, effect in UNUSUAL.items():
    for element, number in _negative(mj, field):
      yield element, f"{field.partition('_')[2]}={number:g} is negative: {effect}"


def _negative(mj: mujoco.MjModel, field: str) -> Iterator[tuple[str, float]]:
  """Yield (element, number) for each negative number of a field; a joint with several has but the first."""
  found: dict[str, float] = {}
  for i in np.flatnonzero(getattr(mj, field) < 0).tolist():
    found.setdefault(_owner(mj, field, i), float(getattr(mj, field)[i]))
  yield from found.items()


def only_drives(mj: mujoco.MjModel) -> bool:
  """Return whether no damper of a joint takes energy: Euler's method does not ask for its end of a step then.

  So does MuJoCo's, where dampers of another kind, polynomial or an actuator's, count as taking energy.
  """
  others = (mj.dof_dampingpoly, mj.actuator_damping, mj.actuator_dampingpoly)
  some = (mj.dof_damping < 0).any() and not (mj.dof_damping > 0).any()
  return bool(some and not any(values.any() for values in others))


def _nonfinite(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  """Yield (element, fault) for every element of a model with nan or an infinite number.

  A range may be infinite: it has no limit.
  """
  for owner, prefixes in ((mj.opt, {}), (mj, ELEMENTS)):
    for field in sorted(dir(owner), key=lambda name: name.endswith("0")):  # those are computed from others
      found = None if field.startswith("_") else getattr(owner, field)
      if not isinstance(found, float | np.ndarray):
        continue
      values = np.asarray(found)
      if values.dtype.kind != "f":
        continue
      faulty = np.isnan(values) if field.endswith("range") else ~np.isfinite(values)
      if not faulty.any():
        continue
      element = "option" if owner is mj.opt else "model"
      if field.partition("_")[0] in prefixes:
        row = int(faulty.reshape(len(values), -1).any(1).argmax())
        element, values = _owner(mj, field, row), values[row]
      yield element, f"{field}={values} is not finite: write numbers"


def _unsupported(mj: mujoco.MjModel, pairs: tuple[ContactPair, ...]) -> Iterator[tuple[str, str]]:
  """Yield (element, feature) for everything that the engine lacks, pairs of geoms by their shapes."""
  yield from _unsupported_elements(mj)
  by_feature: dict[str, list[ContactPair]] = {}
  for pair in pairs:
    if feature := _missing_of_pair(mj, pair):
      by_feature.setdefault(feature, []).append(pair)
  yield from ((_label_of_pairs(mj, apart), feature) for feature, apart in by_feature.items())


def leave_out(mj: mujoco.MjModel, pairs: Sequence[ContactPair]) -> tuple[ContactPair, ...]:
  """Remove features that the engine lacks from a compiled model, as far as the rest works without them.

  Tendons and actuators that it lacks have no effect then, and pairs of geoms do not collide: the others are
  returned. Plugins, flexes and equalities of other kinds stay.
  """
  apart = [pair for pair in pairs if _missing_of_pair(mj, pair)]
  together = tuple(pair for pair in pairs if pair not in apart)
  keep_apart(mj, apart, together)
  mj.opt.enableflags &= ~sum(REFUSED_FLAGS)
  mj.tree_sleep_policy[mj.tree_sleep_policy == mjtSleepPolicy.mjSLEEP_INIT] = mjtSleepPolicy.mjSLEEP_ALLOWED
  for tendon in sorted({i for i, _ in _missing_of_tendons(mj)}):
    mj.tendon_num[tendon] = 0
    for field in ("limited", "actfrclimited", "stiffness", "damping", "armature", "frictionloss"):
      getattr(mj, f"tendon_{field}")[tendon] = 0
  for actuator in sorted({i for i, _ in _missing_of_actuators(mj)}):
    mj.actuator_trntype[actuator], mj.actuator_trnid[actuator] = mjtTrn.mjTRN_JOINT, (0, -1)
    mj.actuator_gear[mj.actuator_outadr[actuator]] = 0.0
    if mj.actuator_actnum[actuator] > 0:
      mj.actuator_dyntype[actuator] = mjtDyn.mjDYN_INTEGRATOR
    mj.actuator_gaintype[actuator], mj.actuator_biastype[actuator] = mjtGain.mjGAIN_FIXED, mjtBias.mjBIAS_NONE
    mj.actuator_gainprm[actuator] = 0.0
  return together


def _mixed_solrefs(mj: mujoco.MjModel, pairs: Sequence[ContactPair]) -> Iterator[tuple[str, str]]:
  """Yield (element, attribute) for each solref of mixed signs that the motion depends on."""
  for field, (used, attribute) in SOLREFS.items():
    for i in np.flatnonzero(getattr(mj, used)).tolist():
      if mixes_formats(getattr(mj, field)[i]):
        yield _owner(mj, field, i), attribute
  for attribute in ("solref", "solreffriction"):
    mixed = [pair for pair in pairs if mixes_formats(getattr(pair, attribute))]
    if mixed:
      yield _label_of_pairs(mj, mixed), attribute


def _owner(mj: mujoco.MjModel, field: str, row: int) -> str:
  """Return the element that has a row of a field of MuJoCo's, for messages."""
  prefix = field.partition("_")[0]
  return label(mj, ELEMENTS[prefix], int(mj.dof_jntid[row]) if prefix == "dof" else row)


def _remarks(mj: mujoco.MjModel, pairs: Sequence[ContactPair]) -> Iterator[str]:
  """Yield a line for each warning about a compiled model, with the `pairs` of geoms that collide."""
  if mj.opt.solver != mjtSolver.mjSOL_NEWTON:
    asked = enum_name(mjtSolver(mj.opt.solver)).upper()
    yield f"the file asks for the {asked} solver: Newton finds the same solution"
  if mj.opt.enableflags & mjtEnableBit.mjENBL_SLEEP:
    yield "the flag sleep has no effect: bodies at rest move on as all others"
  if mj.opt.iterations < FEW_ITERATIONS and (ratio := _stiffness(mj, pairs)) > STIFF:
    yield (
      f"contacts are {ratio:.0e} times as stiff as their bodies are heavy (impratio, solimp), which float32 "
      f"may not solve in iterations={mj.opt.iterations}: set iterations={FEW_ITERATIONS} or more"
    )
  for element, what in _unusual(mj):
    yield f"{element}: {what}"
  for element, attribute in _mixed_solrefs(mj, pairs):
    yield f"{element}: {attribute} of mixed signs: MuJoCo's default replaces it"
  for sensor, feature in enumerate(unsupported_sensors(mj)):
    if feature:
      yield f"{label(mj, 'sensor', sensor)} stays zero: {feature} is not supported"
    if mj.sensor_interval[sensor, 0] > 0 and not mj.sensor_history[sensor, 0]:  # as in MuJoCo
      yield f'{label(mj, "sensor", sensor)}: interval without nsample has no effect: write nsample="1"'


def _stiffness(mj: mujoco.MjModel, pairs: Sequence[ContactPair]) -> float:
  """Return the greatest stiffness of friction over inertia at a contact, from its impedance d."""
  impedance = max((d for pair in pairs for d in pair.solimp[:2] if not isinstance(d, Scalar)), default=0.0)
  return float(mj.opt.impratio * impedance / (1.0 - impedance))


def label(mj: mujoco.MjModel, kind: str, index: int) -> str:
  """Return an element's kind and name for messages, or its number if it has no name."""
  name = mujoco.mj_id2name(mj, getattr(mjtObj, f"mjOBJ_{kind.upper()}"), index)
  return f"{kind} {name!r}" if name else f"{kind} {index}"


def _label_of_pairs(mj: mujoco.MjModel, pairs: Sequence[ContactPair]) -> str:
  """Return the first of some pairs of geoms for messages, and how many more there are."""
  one, two = (label(mj, "geom", geom) for geom in (pairs[0].geom1, pairs[0].geom2))
  others = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
  return f"{one} against {two}{others}"


def one_line(error: Exception) -> str:
  """Return the message of MuJoCo's compiler in one line."""
  return ", ".join(filter(None, (line.strip(" ,:") for line in str(error).splitlines())))


def _unsupported_elements(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  """Yield (element, feature) for everything that the engine lacks, except for contacts."""
  yield from _unsupported_options(mj)
  for kind, count in (("flex", mj.nflex), ("plugin", mj.nplugin)):
    if count:
      yield label(mj, kind, 0), f"a model with {kind} elements"
  for i in range(mj.neq):
    if int(mj.eq_type[i]) not in EQUALITIES:
      yield label(mj, "equality", i), f"equality {enum_name(mjtEq(mj.eq_type[i]))}"
  yield from ((label(mj, "tendon", i), feature) for i, feature in _missing_of_tendons(mj))
  yield from ((label(mj, "actuator", i), feature) for i, feature in _missing_of_actuators(mj))


def _unsupported_to_vary(mj: mujoco.MjModel, vary: Sequence[str]) -> Iterator[tuple[str, str]]:
  """Yield (element, feature) for fields of `vary` that the engine derives constants from."""
  if "geom_size" in vary and mj.opt.density:  # MuJoCo's compiler derives the added mass from them
    for geom in np.flatnonzero(mj.geom_fluid[:, 0]).tolist():
      yield label(mj, "geom", geom), "vary='geom_size' of fluidshape ellipsoid"
  if "tendon_armature" in vary:
    for tendon in range(mj.ntendon):
      if geoms_on_path(mj, tendon):
        yield label(mj, "tendon", tendon), "vary='tendon_armature' of a tendon around geoms"
  if masses := sorted({"body_mass", "body_ipos"} & {*vary}):  # the camera's place follows from them
    for camera in _cameras_of_sensors(mj):
      if mj.cam_mode[camera] == TRACKCOM:
        yield label(mj, "camera", camera), f"vary={masses[0]!r} of mode trackcom"
  if mj.opt.enableflags & OVERRIDE:  # it would have no effect
    yield from (("option", f"vary={name!r} with the flag override") for name in vary if name in OF_PAIRS)


def _missing_of_tendons(mj: mujoco.MjModel) -> Iterator[tuple[int, str]]:
  """Yield (tendon, feature) for everything that the engine lacks."""
  for tendon in range(mj.ntendon):
    for part in geoms_on_path(mj, tendon):
      side = round(mj.wrap_prm[part])
      if side >= 0 and mj.site_bodyid[side] != mj.geom_bodyid[mj.wrap_objid[part]]:
        yield tendon, "a side site on another body than its geom"


def geoms_on_path(mj: mujoco.MjModel, tendon: int) -> list[int]:
  """Return the parts of a tendon that are geoms."""
  first = mj.tendon_adr[tendon]
  geoms = (mjtWrap.mjWRAP_SPHERE.value, mjtWrap.mjWRAP_CYLINDER.value)
  return [part for part in range(first, first + mj.tendon_num[tendon]) if mj.wrap_type[part] in geoms]


def unsupported_sensors(mj: mujoco.MjModel) -> list[str]:
  """Return for each sensor the feature that the engine lacks, or an empty text."""
  return [_missing_of_sensor(mj, i) for i in range(mj.nsensor)]


def _cameras_of_sensors(mj: mujoco.MjModel) -> list[int]:
  """Return the cameras that sensors are attached to or refer to."""
  sides = ((mj.sensor_objtype, mj.sensor_objid), (mj.sensor_reftype, mj.sensor_refid))
  return sorted({int(i) for kinds, ids in sides for i in ids[kinds == mjtObj.mjOBJ_CAMERA]})


def _missing_of_sensor(mj: mujoco.MjModel, sensor: int) -> str:
  kind = int(mj.sensor_type[sensor])
  sides = [
    (int(getattr(mj, f"sensor_{side}type")[sensor]), int(getattr(mj, f"sensor_{side}id")[sensor]))
    for side in ("obj", "ref")
  ]
  if kind not in READINGS:
    return enum_name(mjtSensor(kind))
  if kind == Kind.RANGEFINDER and mj.sensor_intprm[sensor, 0] & ~FIELDS:
    return "a normal"
  if kind in DISTANCES and not all(can_measure(kinds_of(mj, pair)) for pair in measured_pairs(mj, *sides)):
    return "the distance of such shapes"
  return ""


def _unsupported_options(mj: mujoco.MjModel) -> Iterator[tuple[str, str]]:
  option = mj.opt
  if option.integrator not in INTEGRATORS.values():
    name = enum_name(mjtIntegrator(option.integrator))
    yield "option", f"integrator {name} (which load_model(..., integrator='implicitfast') replaces)"
  for flag in REFUSED_FLAGS:
    if option.enableflags & flag:
      yield "option", f"flag {enum_name(flag)}"
  if option.enableflags & mjtEnableBit.mjENBL_SLEEP:  # in air, or in each other, until something wakes them
    for tree in np.flatnonzero(mj.tree_sleep_policy == mjtSleepPolicy.mjSLEEP_INIT).tolist():
      yield label(mj, "body", int(mj.tree_bodyadr[tree])), "sleep init"


def _missing_of_actuators(mj: mujoco.MjModel) -> Iterator[tuple[int, str]]:
  """Yield (actuator, feature) for everything that the engine lacks."""
  for i in range(mj.nactuator):
    for field, (kind, supported) in ACTUATOR_TYPES.items():
      name = enum_name(kind(int(getattr(mj, f"actuator_{field}")[i])))
      if name not in supported:
        yield i, f"{field} {name}"
    gain, bias = mjtGain(int(mj.actuator_gaintype[i])), mjtBias(int(mj.actuator_biastype[i]))
    if (gain == mjtGain.mjGAIN_DCMOTOR) != (bias == mjtBias.mjBIAS_DCMOTOR):
      yield i, "dcmotor as gaintype or biastype alone"
    elif gain == mjtGain.mjGAIN_DCMOTOR and mj.actuator_dyntype[i] != mjtDyn.mjDYN_DCMOTOR:
      yield i, f"gaintype dcmotor with dyntype {enum_name(mjtDyn(int(mj.actuator_dyntype[i])))}"


def _missing_of_pair(mj: mujoco.MjModel, pair: ContactPair) -> str:
  """Return the feature of a pair of geoms that the engine lacks, or an empty text."""
  types = [int(mj.geom_type[geom]) for geom in (pair.geom1, pair.geom2)]
  return "" if can_collide(*types) else f"collision of {' and '.join(enum_name(mjtGeom(t)) for t in types)}"


def enum_name(member: Any) -> str:
  """Return MJCF's name of an enumeration's member: mjTRN_SITE is 'site'."""
  return str(member.name).split("_", 1)[1].lower()
