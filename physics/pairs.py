"""Which pairs of geoms can collide, and with which contact parameters: MuJoCo's filters and mixing rules.

Source: MuJoCo's documentation, chapters computation ("Selection") and modeling ("Contact parameters").
"""

import dataclasses
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_FRICTION = 1e-5  # mjMINMU: a pyramid of zero width has a singular Hessian
MIN_IMPEDANCE, MAX_IMPEDANCE = 1e-4, 0.9999  # mjMINIMP, mjMAXIMP
MIN_SOLMIX = 1e-15  # mjMINVAL: a smaller weight counts as none


@dataclasses.dataclass(frozen=True, eq=False)
class ContactPair:
  """Two geoms that can collide, type of geom1 <= type of geom2, and the parameters of their contacts."""

  geom1: int
  geom2: int
  condim: int  # 1: frictionless, 3: sliding friction
  friction: Floats  # [5] two sliding [1], one torsional and two rolling [m]
  solref: Floats  # [2] time constant [s] (refsafe applied) and damping ratio, or -stiffness and -damping
  solreffriction: Floats  # [2] the same for the friction rows of elliptic cones; zero: as solref
  solimp: Floats  # [5] d0, d_width, width [m], midpoint, power; clipped to the values that MuJoCo uses
  margin: float  # there is force below this distance [m]
  gap: float  # contacts are detected, without force, up to margin + gap [m]


def contact_pairs(mj: Any, *, filter_parent: bool, min_time_constant: float) -> tuple[ContactPair, ...]:
  """Return every pair of geoms of a compiled MjModel that can collide, in the order of geom ids.

  Explicit pairs bring their own parameters and pass all filters but one: geoms welded to each other, or both
  to bodies without degrees of freedom, never push each other. `min_time_constant` [s] is the lower bound of
  refsafe, 0 for none.
  """
  pairs = []
  explicit = {(mj.pair_geom1[i], mj.pair_geom2[i]): i for i in range(mj.npair)}
  for geoms in itertools.combinations(range(mj.ngeom), 2):
    weld1, weld2 = mj.body_weldid[mj.geom_bodyid[list(geoms)]]
    if weld1 == weld2 or not mj.body_dofnum[[weld1, weld2]].any():
      continue
    geom1, geom2 = sorted(geoms, key=lambda geom: mj.geom_type[geom])
    index = explicit.get((geom1, geom2), explicit.get((geom2, geom1)))
    if index is not None:
      parameters = _explicit_parameters(mj, index)
    elif _may_collide(mj, *geoms, filter_parent):
      parameters = _mixed_parameters(mj, geom1, geom2)
    else:
      continue
    pairs.append(ContactPair(geom1, geom2, **_clipped(parameters, min_time_constant)))
  return tuple(pairs)


def _may_collide(mj: Any, geom1: int, geom2: int, filter_parent: bool) -> bool:
  """Apply the filters of pairs that the file does not name: bits, excluded bodies, parent and child."""
  types, affinities = mj.geom_contype, mj.geom_conaffinity
  if not (types[geom1] & affinities[geom2] or types[geom2] & affinities[geom1]):
    return False
  body1, body2 = sorted(mj.geom_bodyid[[geom1, geom2]])
  if (int(body1) << 16) + int(body2) in mj.exclude_signature:
    return False
  weld1, weld2 = mj.body_weldid[[body1, body2]]
  parent1, parent2 = mj.body_weldid[mj.body_parentid[[weld1, weld2]]]
  return not (filter_parent and weld1 and weld2 and (weld1 == parent2 or weld2 == parent1))


def _explicit_parameters(mj: Any, index: int) -> dict[str, Any]:
  fields = ("friction", "solref", "solreffriction", "solimp", "margin", "gap")
  return {"condim": mj.pair_dim[index]} | {name: getattr(mj, f"pair_{name}")[index].copy() for name in fields}


def _mixed_parameters(mj: Any, geom1: int, geom2: int) -> dict[str, Any]:
  """Take the parameters of the geom with the higher priority, or mix those of both."""
  both = np.array([geom1, geom2])
  priority = mj.geom_priority[both]
  winners = both[priority == priority.max()]
  solref = mj.geom_solref[winners]
  weight = _weights(mj.geom_solmix[winners])
  return {
    "condim": mj.geom_condim[winners].max(),
    "friction": mj.geom_friction[winners].max(axis=0)[[0, 0, 1, 2, 2]],
    "solref": weight @ solref if (solref[:, 0] > 0).all() else solref.min(axis=0),
    "solreffriction": np.zeros(2),
    "solimp": weight @ mj.geom_solimp[winners],
    "margin": mj.geom_margin[both].sum(),
    "gap": mj.geom_gap[both].sum(),
  }


def _weights(solmix: Floats) -> Floats:
  """Return the weights of one or two geoms, in proportion to solmix; equal if all are none."""
  weight = np.where(solmix >= MIN_SOLMIX, solmix, 0.0)
  return weight / weight.sum() if weight.any() else np.full(len(solmix), 1 / len(solmix))


def _clipped(parameters: dict[str, Any], min_time_constant: float) -> dict[str, Any]:
  """Bound the parameters as MuJoCo does when it uses them."""
  solref = parameters["solref"].copy()
  if solref[0] > 0:
    solref[0] = max(solref[0], min_time_constant)
  low = np.array([MIN_IMPEDANCE, MIN_IMPEDANCE, 0, MIN_IMPEDANCE, 1])
  high = np.array([MAX_IMPEDANCE, MAX_IMPEDANCE, np.inf, MAX_IMPEDANCE, np.inf])
  return {
    "condim": int(parameters["condim"]),
    "friction": np.maximum(parameters["friction"], MIN_FRICTION),
    "solref": solref,
    "solreffriction": parameters["solreffriction"],
    "solimp": np.clip(parameters["solimp"], low, high),
    "margin": float(parameters["margin"]),
    "gap": float(parameters["gap"]),
  }
