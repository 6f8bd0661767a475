"""Pairs of geoms that can collide, and their contact parameters: MuJoCo's filters and mixing rules.

Source: MuJoCo's documentation, chapters computation ("Selection") and modeling ("Contact parameters").
"""

import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.algebra.spatial import MINVAL, dot
from physics.trace.trace import Number, clip, maximum, minimum, number, where

Floats = NDArray[np.float64]
Numbers = Sequence[Number]

HFIELD = 1  # mjtGeom: it and planes, type 0, never touch each other
OVERRIDE = 1  # mjtEnableBit: options replace the parameters of every contact
BODY = 5  # mjtTrn: adhesion, an actuator on a body
NEVER = -1e10  # [m] margin of a pair that never touches
MIN_FRICTION = 1e-5  # mjMINMU: a pyramid of zero width has a singular Hessian
MIN_IMPEDANCE, MAX_IMPEDANCE = 1e-4, 0.9999  # mjMINIMP, mjMAXIMP


@dataclasses.dataclass(frozen=True, eq=False)
class ContactPair:
  """Two geoms that can collide, type of geom1 <= type of geom2, and the parameters of their contacts."""

  geom1: int
  geom2: int
  explicit: int | None  # number of the <pair> element that names them
  condim: int  # 1: frictionless; 3: sliding; 4: torsional; 6: rolling friction
  margin: float  # force acts below this distance [m]
  gap: float  # contacts are detected, without force, up to margin + gap [m]
  reach: float  # contacts are found below this distance [m]: beyond the margin only where something pulls
  adhesion: float  # [N] that the contact pulls with before it breaks
  friction: Numbers  # [5] two sliding [1], one torsional and two rolling [m]
  solref: Numbers  # [2] time constant [s] and damping ratio, or -stiffness and -damping
  solreffriction: Numbers  # [2] the same for the friction rows of elliptic cones; zero: as solref
  solimp: Numbers  # [5] d0, d_width, width [m], midpoint, power; clipped to the values that MuJoCo uses
  params: Mapping[str, Number] | None = None  # `contact_params` of the contacts; None: to be computed

  @property
  def limit(self) -> float:
    """The distance [m] below which contacts act: the margin, or with adhesion the reach."""
    return self.reach if self.adhesion else self.margin


def contact_pairs(mj: Any, *, filter_parent: bool) -> tuple[ContactPair, ...]:
  """Return every pair of geoms of a compiled MjModel that can collide, in the order of geom ids.

  Explicit pairs have their own parameters and pass all filters except one: geoms that are welded to each
  other, or both to bodies without degrees of freedom, never collide. Two that name the same geoms both count.
  """
  pairs, kinds = [], _kinds(mj)
  found: dict[tuple[int, ...], dict[str, Any]] = {}  # by kinds: of many alike geoms, one pair is computed
  explicit: dict[frozenset[int], list[int]] = {}
  for i in range(mj.npair):
    explicit.setdefault(frozenset((int(mj.pair_geom1[i]), int(mj.pair_geom2[i]))), []).append(i)
  for geoms in _apart(mj):
    geom1, geom2 = sorted(geoms, key=lambda geom: mj.geom_type[geom])
    indices: Sequence[int | None] = explicit.get(frozenset(geoms), [])
    if not indices and _may_collide(mj, *geoms, filter_parent):
      indices = [None]
    for index in indices:
      key = (kinds[geom1], kinds[geom2]) if index is None else (index,)
      if key not in found:
        found[key] = _filters(mj, (geom1, geom2), index) | pair_parameters(mj, (geom1, geom2), index)
      pairs.append(ContactPair(geom1, geom2, index, **found[key]))
  return tuple(pairs)


def _kinds(mj: Any) -> list[int]:
  """Return a number for each geom, the same for those that give pairs the same parameters."""
  names = ("priority", "solmix", "solref", "solimp", "friction", "condim", "margin", "gap", "adhesion")
  numbers = [np.reshape(getattr(mj, f"geom_{name}"), (mj.ngeom, -1)) for name in names if mj.ngeom]
  rows = np.column_stack([*numbers, _pulled(mj)])
  return np.unique(rows, axis=0, return_inverse=True)[1].ravel().tolist()


def _pulled(mj: Any) -> NDArray[np.bool_]:
  """Return which geoms [ngeom] belong to a body with an adhesion actuator."""
  return np.isin(mj.geom_bodyid, mj.actuator_trnid[mj.actuator_trntype == BODY, 0])


def _apart(mj: Any) -> Iterator[tuple[int, int]]:
  """Yield the pairs of geoms that are not welded to each other, where one can move and one is no ground."""
  weld, solid = mj.body_weldid[mj.geom_bodyid], mj.geom_type > HFIELD
  moves = mj.body_dofnum[weld] > 0
  for geom in range(mj.ngeom):
    others = (weld[geom + 1 :] != weld[geom]) & (moves[geom + 1 :] | moves[geom])
    others &= solid[geom + 1 :] | solid[geom]
    for other in np.flatnonzero(others).tolist():
      yield geom, geom + 1 + other


def _may_collide(mj: Any, geom1: int, geom2: int, filter_parent: bool) -> bool:
  """Return whether a pair without a <pair> element passes the filters: bits, exclusions, parenthood."""
  types, affinities = mj.geom_contype, mj.geom_conaffinity
  if not (types[geom1] & affinities[geom2] or types[geom2] & affinities[geom1]):
    return False
  body1, body2 = sorted(mj.geom_bodyid[[geom1, geom2]])
  if (int(body1) << 16) + int(body2) in mj.exclude_signature:
    return False
  weld1, weld2 = mj.body_weldid[[body1, body2]]
  parent1, parent2 = mj.body_weldid[mj.body_parentid[[weld1, weld2]]]
  return not (filter_parent and weld1 and weld2 and (weld1 == parent2 or weld2 == parent1))


def keep_apart(mj: Any, apart: Sequence[ContactPair], together: Sequence[ContactPair]) -> None:
  """Change a compiled MjModel so that some pairs no longer collide, and others still do.

  A geom of each pair exchanges its bits for one of its own, which the geoms that it still touches accept.
  Raises ValueError if there are more such geoms than bits.
  """
  types, affinities = mj.geom_contype, mj.geom_conaffinity
  mj.pair_margin[[pair.explicit for pair in apart if pair.explicit is not None]] = NEVER
  chosen = _cover([(pair.geom1, pair.geom2) for pair in apart if pair.explicit is None])
  types[chosen] = affinities[chosen] = 0
  used = int(np.bitwise_or.reduce(types | affinities, initial=0))
  free = (1 << k for k in range(31) if not used >> k & 1)
  for geom in chosen:
    both = [(pair.geom1, pair.geom2) for pair in together if geom in (pair.geom1, pair.geom2)]
    if others := [two if one == geom else one for one, two in both]:
      types[geom] = next(free, 0)
      if not types[geom]:
        raise ValueError(f"{len(chosen)} geoms cannot collide with others, too many to leave out: use fewer")
      affinities[others] |= types[geom]
  for bits, of_bodies in ((types, mj.body_contype), (affinities, mj.body_conaffinity)):
    of_bodies[:] = 0
    np.bitwise_or.at(of_bodies, mj.geom_bodyid, bits)


def _cover(pairs: list[tuple[int, int]]) -> list[int]:
  """Return a small set of geoms that covers every pair: greedily, the geom in most pairs first."""
  chosen = []
  while pairs:
    geoms = [geom for pair in pairs for geom in pair]
    chosen.append(max(sorted(set(geoms)), key=geoms.count))
    pairs = [pair for pair in pairs if chosen[-1] not in pair]
  return chosen


def _filters(mj: Any, geoms: tuple[int, int], index: int | None) -> dict[str, Any]:
  """Return condim, margin, gap, reach and adhesion of a pair."""
  both, winners = list(geoms), _winners(mj, geoms)
  if index is not None:
    condim, margin, gap = mj.pair_dim[index], mj.pair_margin[index], mj.pair_gap[index]
    adhesion = mj.pair_adhesion[index]
  else:
    condim, adhesion = mj.geom_condim[winners].max(), mj.geom_adhesion[winners].sum()
    margin, gap = mj.geom_margin[both].sum(), mj.geom_gap[both].sum()
  margin = mj.opt.o_margin if mj.opt.enableflags & OVERRIDE else margin
  pulled = _pulled(mj)[both].any()
  return {
    "condim": int(condim),
    "margin": float(margin),
    "gap": float(gap),
    "reach": float(margin + (gap if pulled or adhesion else min(gap, 0.0))),
    "adhesion": float(adhesion),
  }


def pair_parameters(source: Any, geoms: tuple[int, int], index: int | None) -> dict[str, Any]:
  """Return friction, solref, solreffriction and solimp of a pair (MuJoCo's `mj_contactParam`).

  `source` is a compiled MjModel or a `Model`, with numbers that may be traced. The geom with the higher
  priority decides, or both are mixed; the <pair> of number `index` has its own parameters. The flag override
  replaces them all.
  """
  option, names = getattr(source, "mj", source).opt, ("friction", "solref", "solreffriction", "solimp")
  if option.enableflags & OVERRIDE:
    values = (option.o_friction, option.o_solref, option.o_solref, option.o_solimp)
    parameters = {name: [number(x) for x in row] for name, row in zip(names, values, strict=True)}
  elif index is not None:
    parameters = {name: [number(x) for x in getattr(source, f"pair_{name}")[index]] for name in names}
  else:
    parameters = _mixed(source, _winners(source, geoms))
  low = (MIN_IMPEDANCE, MIN_IMPEDANCE, 0.0, MIN_IMPEDANCE, 1.0)
  high = (MAX_IMPEDANCE, MAX_IMPEDANCE, np.inf, MAX_IMPEDANCE, np.inf)
  return parameters | {
    "friction": [maximum(x, MIN_FRICTION) for x in parameters["friction"]],
    "solimp": [clip(x, a, b) for x, a, b in zip(parameters["solimp"], low, high, strict=True)],
  }


def mixes_formats(solref: Numbers) -> bool:
  """Return whether only one number is negated stiffness or damping, so that MuJoCo uses its default."""
  return bool((solref[0] > 0.0) != (solref[1] > 0.0))


def _winners(source: Any, geoms: tuple[int, int]) -> list[int]:
  """Return the geoms with the higher priority: one of them, or both."""
  priority = [int(source.geom_priority[geom]) for geom in geoms]
  return [geom for geom, own in zip(geoms, priority, strict=True) if own == max(priority)]


def _mixed(source: Any, geoms: list[int]) -> dict[str, list[Number]]:
  def rows(name: str) -> list[list[Number]]:
    return [[number(x) for x in getattr(source, f"geom_{name}")[geom]] for geom in geoms]

  def fold(function: Callable[[Number, Number], Number], name: str) -> list[Number]:
    return [reduce(function, column) for column in zip(*rows(name), strict=True)]

  weights = _weights(source.geom_solmix[geoms])
  solref, solimp = (
    [dot(weights, column) for column in zip(*rows(name), strict=True)] for name in ("solref", "solimp")
  )
  standard = reduce(operator.and_, [row[0] > 0.0 for row in rows("solref")])
  slide, spin, roll = fold(maximum, "friction")
  return {
    "friction": [slide, slide, spin, roll, roll],
    "solref": [where(standard, a, b) for a, b in zip(solref, fold(minimum, "solref"), strict=True)],
    "solreffriction": [0.0, 0.0],
    "solimp": solimp,
  }


def _weights(solmix: Floats) -> list[float]:
  """Return the weights of one or two geoms, in proportion to solmix; equal if all are zero."""
  weight = np.where(solmix >= MINVAL, solmix, 0.0)
  return list(map(float, weight / weight.sum() if weight.any() else np.full(len(solmix), 1 / len(solmix))))
