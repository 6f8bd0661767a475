"""Distance sensors: the nearest points of two geoms."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from physics.algebra.spatial import Vector, dot
from physics.collision.convex import CONVEX, Forms, hulls_of
from physics.collision.geometry import (
  BOX,
  CAPSULE,
  CYLINDER,
  ELLIPSOID,
  MESH,
  PLANE,
  SPHERE,
  ContactCandidate,
  Shape,
  geom_shape,
)
from physics.collision.narrow import NARROW, ONE_POINT
from physics.derived import Derived
from physics.dynamics.frame import BODY
from physics.sensor.kinds import Kind, Reading, Sensor
from physics.trace.trace import Number, sqrt, where

# Pairs of geom types, lesser first, with a formula that also holds for separated geoms; others are searched.
MEASURED = {
  *((PLANE, kind) for kind in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)),
  *((SPHERE, kind) for kind in (SPHERE, CAPSULE, CYLINDER, BOX)),
  (CAPSULE, CAPSULE),
  (CAPSULE, BOX),
}
PLANES = (PLANE, PLANE)
DISTANCES = (Kind.GEOMDIST, Kind.GEOMNORMAL, Kind.GEOMFROMTO)
TINY = 1e-12  # distance [m] below which there is no direction


def measured_pairs(model: Any, *sides: tuple[int, int]) -> list[tuple[int, int]]:
  """Return the pairs of geoms between two sides, geoms or bodies by type and number, in MuJoCo's order."""
  ones, others = (
    np.flatnonzero(model.geom_bodyid == index).tolist() if kind == BODY else [index] for kind, index in sides
  )
  return [(one, other) for one in ones for other in others]


def kinds_of(model: Any, pair: tuple[int, int]) -> tuple[int, int]:
  """Return the types of two geoms, the lesser first."""
  one, two = sorted(int(model.geom_type[geom]) for geom in pair)
  return one, two


def can_measure(kinds: tuple[int, int]) -> bool:
  """Return whether the distance of two types of geoms is computed."""
  return kinds in MEASURED or set(kinds) <= set(CONVEX) or kinds == PLANES


def _nearest(derived: Derived, sensor: Sensor) -> tuple[Number, Vector, Vector]:
  """Return the least distance of all pairs, at most the cutoff, and the two nearest points.

  The points are zero where nothing is nearer than the cutoff; as in MuJoCo, planes are never near each other.
  """
  program, nearest = derived.program, derived.program.array(7)
  nearest.fill([sensor.cutoff, *[0.0] * 6])
  for pair in measured_pairs(sensor.model, sensor.target, sensor.reference):
    first, second = sorted(pair, key=lambda geom: sensor.model.geom_type[geom])
    origin = derived.poses.origin[sensor.model.geom_bodyid[first]]
    one, two = (_shape(derived, geom, origin) for geom in (first, second))
    kinds = kinds_of(sensor.model, pair)
    if kinds == PLANES:
      continue
    narrow = NARROW[kinds] if kinds in MEASURED else ONE_POINT
    if narrow.tables:
      hulls = hulls_of(derived.model, (first, second))
      forms = (Forms(program, derived.model, [geom], hulls).at(0) for geom in (first, second))
      one, two = (replace(shape, asset=form) for shape, form in zip((one, two), forms, strict=True))
    for candidate in narrow.find(program, one, two, sensor.cutoff):
      if isinstance(candidate, ContactCandidate):
        with program.when_any(candidate.active):
          distance, normal, point = candidate.resolve()
          half = normal * (0.5 * distance)
          ends = [origin + point - half, origin + point + half]
          values = [distance, *(x for end in (ends if first == pair[0] else ends[::-1]) for x in end)]
          nearer = candidate.active & (distance < nearest[0])
          nearest.fill([where(nearer, x, y) for x, y in zip(values, nearest.read(), strict=True)])
  distance, *points = nearest.read()
  return distance, Vector(*points[:3]), Vector(*points[3:])


def _shape(derived: Derived, geom: int, origin: Vector) -> Shape:
  """Return a geom relative to a world position."""
  body = int(derived.model.geom_bodyid[geom])
  return geom_shape(derived.model, derived.poses, geom, origin - derived.poses.origin[body])


def _direction(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  """Return the unit vector from the first nearest point to the second."""
  _, start, end = _nearest(derived, sensor)
  between = end - start
  square = dot(between, between)
  vanishes = square < TINY**2
  return between * where(vanishes, 0.0, 1.0 / sqrt(where(vanishes, 1.0, square)))


DISTANCE_READINGS: dict[Kind, Reading] = {
  Kind.GEOMDIST: lambda derived, sensor: [_nearest(derived, sensor)[0]],
  Kind.GEOMNORMAL: _direction,
  Kind.GEOMFROMTO: lambda derived, sensor: [x for end in _nearest(derived, sensor)[1:] for x in end],
}
