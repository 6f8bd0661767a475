"""Parameters of MuJoCo's soft constraints: impedance, reference acceleration, constants of contacts.

Source: manual, chapter Computation, section Constraint model. Constants are computed in float64 here; numbers
that depend on the state are traced.
"""

import functools
from dataclasses import dataclass
from typing import Any

from physics.algebra.spatial import MINVAL
from physics.constraint.cone import Cone, Elliptic, Pyramid
from physics.model.model import Model
from physics.model.pairs import MAX_IMPEDANCE, MIN_IMPEDANCE, ContactPair, mixes_formats
from physics.trace.trace import Number, absolute, clip, maximum, minimum, number, power, square, where

ROW_SCALES = ("friction", "aspect", "spin", "roll", "cross_roll")
UNMOVED = 1e-24  # [1/kg] in place of zero, so that float32 can divide by it
YIELDING = 1e-10  # [1/kg] inverse mass, above which R is greater than MINVAL at any impedance
DEFAULT_SOLREF = (0.02, 1.0)  # mj_defaultSolRefImp


@dataclass(frozen=True)
class ConstraintParams:
  """The parameters of a constraint: reference acceleration and impedance (`solref`, `solimp`), margin.

  Fields are numbers, or traced values where they differ between the entries of one list.
  """

  stiffness: Number  # K: aref = -B v - K d(r) r
  damping: Number  # B
  d0: Number  # impedance at zero penetration
  rise: Number  # impedance at full width less that at zero
  per_width: Number  # 1 / width [1/m]
  midpoint: Number
  power: Number
  scale_below: Number  # of the curve up to the midpoint: midpoint^(1 - power)
  scale_above: Number  # of the curve from there on: (1 - midpoint)^(1 - power)
  margin: Number  # [m, rad]

  def impedance(self, position: Number) -> Number:
    """Return the impedance in (0, 1) at a distance less margin [m, rad] (MuJoCo's `mj_makeImpedance`)."""
    x = minimum(absolute(position) * self.per_width, 1.0)
    rest = 1.0 - x
    shape = where(
      x < self.midpoint,
      self.scale_below * power(x, self.power),
      1.0 - self.scale_above * power(rest, self.power),
    )
    return self.d0 + self.rise * shape

  def reference(self, position: Number, velocity: Number, impedance: Number) -> Number:
    """Return -aref, the reference acceleration's part of a row's residual (`mj_referenceConstraint`)."""
    return self.damping * velocity + self.stiffness * (impedance * position)


def constraint_params(model: Model, solref: Any, solimp: Any, margin: Number) -> ConstraintParams:
  """Return a constraint's constants from MuJoCo's solref [2], solimp [5] and margin [m, rad]."""
  d0, dmax, width, midpoint, exponent = (number(x) for x in solimp)
  d0, dmax, midpoint = (clip(x, MIN_IMPEDANCE, MAX_IMPEDANCE) for x in (d0, dmax, midpoint))
  exponent = maximum(exponent, 1.0)
  stiffness, damping = reference_constants(model, solref, dmax)
  flat = (width <= MINVAL) | (absolute(dmax - d0) <= MINVAL)
  mean = 0.5 * (d0 + dmax)
  below, above = (1.0 / power(x, exponent - 1.0) for x in (midpoint, 1.0 - midpoint))
  return ConstraintParams(
    stiffness=stiffness,
    damping=damping,
    d0=where(flat, mean, d0),
    rise=where(flat, 0.0, dmax - d0),
    per_width=where(flat, 1.0, 1.0 / maximum(width, MINVAL)),
    midpoint=midpoint,
    power=exponent,
    scale_below=below,
    scale_above=above,
    margin=number(margin),
  )


def reference_constants(model: Model, solref: Any, dmax: Number) -> tuple[Number, Number]:
  """Return stiffness K [1/s^2] and damping B [1/s] of the reference, from either format of solref [2].

  A solref of mixed signs is of neither format: MuJoCo's default replaces it.
  """
  time, ratio = (number(x) for x in solref)
  mixed = ((time > 0.0) & (ratio <= 0.0)) | ((time <= 0.0) & (ratio > 0.0))
  time, ratio = (where(mixed, usual, own) for usual, own in zip(DEFAULT_SOLREF, (time, ratio), strict=True))
  standard = time > 0.0
  bounded = maximum(time, 2 * model.timestep) if model.refsafe else time
  stiffness = where(
    standard, 1.0 / maximum(square(dmax * bounded * ratio), MINVAL), -time / maximum(square(dmax), MINVAL)
  )
  damping = where(standard, 2.0 / maximum(dmax * bounded, MINVAL), -ratio / maximum(dmax, MINVAL))
  return stiffness, damping


@functools.lru_cache(maxsize=8)
def contact_cone(model: Model, still: bool) -> Cone:
  """Return the cone of contacts with still geoms, or of those between moving ones."""
  dims = [pair.condim for pair in model.pairs if has_still_geom(model, pair) == still]
  dim = max(dims, default=1)
  return Elliptic(dim) if model.cone == "elliptic" and dim > 1 else Pyramid(dim)


def has_still_geom(model: Model, pair: ContactPair) -> bool:
  """Return whether one geom of a pair never moves."""
  return bool((model.body_weldid[model.geom_bodyid[[pair.geom1, pair.geom2]]] == 0).any())


def contact_params(model: Model, pair: ContactPair) -> dict[str, Number]:
  """Return the constants of a geom pair's contacts.

  They are the fields of `ConstraintParams`; the scales of the rows: `friction` of the first tangent, `aspect`
  of the second over the first, `spin` [m], `roll` and `cross_roll` over the tangents' scales [m]; the
  constants of the cone; and the weight: the normal, or every edge, has D = weight * impedance /
  (1 - impedance), or `stiffest` if that is less.
  """
  if pair.params is not None:
    return dict(pair.params)
  cone, dmax = contact_cone(model, has_still_geom(model, pair)), number(pair.solimp[1])
  b1, b2 = (int(model.geom_bodyid[g]) for g in (pair.geom1, pair.geom2))
  inverse_mass = number(model.body_invweight0[b1, 0]) + number(model.body_invweight0[b2, 0])
  fields: dict[str, Number] = vars(constraint_params(model, pair.solref, pair.solimp, pair.margin)).copy()
  mu = [number(x) for x in pair.friction]
  ratio = model.impratio / square(mu[0])
  fields |= cone.constants(pair.condim, ratio)
  if isinstance(cone, Elliptic):
    of_its_own = not mixes_formats(pair.solreffriction) and any(pair.solreffriction)
    friction_solref = pair.solreffriction if of_its_own else pair.solref
    fields["friction_damping"] = reference_constants(model, friction_solref, dmax)[1]
  softness, most = cone.softness(pair.condim, ratio, mu[0]), clip(dmax, MIN_IMPEDANCE, MAX_IMPEDANCE)
  edge = 1.0 if pair.condim == 1 or isinstance(cone, Elliptic) else 1.0 + square(mu[0])
  fields["weight"] = 1.0 / (softness * maximum(inverse_mass, MINVAL * most / (1.0 - most) / edge))
  if has_unyielding(model):
    fields["weight"] = 1.0 / (softness * maximum(inverse_mass, UNMOVED))
    fields["stiffest"] = edge / (softness * MINVAL)
  if has_adhesion(model):
    fields |= _adhesion_params(cone, pair, fields["weight"] * softness)
  scales = (mu[0], mu[1] / mu[0], mu[2], mu[3] / mu[0], mu[4] / mu[1])
  for k, (name, scale) in enumerate(zip(ROW_SCALES, scales, strict=True)):
    fields[name] = scale if k < pair.condim - 1 else 0.0
  return fields


@functools.lru_cache(maxsize=8)
def has_adhesion(model: Model) -> bool:
  """Return whether any pair of geoms is pulled together."""
  return any(pair.adhesion for pair in model.pairs)


@functools.lru_cache(maxsize=8)
def has_unyielding(model: Model) -> bool:
  """Return whether no joint moves the point of some pair's contacts: MuJoCo's R is MINVAL there.

  An example is a link that turns about its centre of mass and collides with a fixed base.
  """
  inverse_mass = model.mj.body_invweight0[:, 0][model.geom_bodyid]
  return any(inverse_mass[[pair.geom1, pair.geom2]].sum() < YIELDING for pair in model.pairs)


def _adhesion_params(cone: Cone, pair: ContactPair, weight: Number) -> dict[str, Number]:
  """Return adhesion [N], the part of it that each edge of the cone has, and part and weight in the gap.

  `weight` is the weight of a row without friction. In the gap, contacts have condim 1.
  """
  return {
    "adhesion": pair.adhesion,
    "pull": pair.adhesion / cone.edges(pair.condim),
    "gap_pull": pair.adhesion / cone.edges(1),
    "gap_weight": weight / cone.softness(1, 1.0, 0.0),
  }
