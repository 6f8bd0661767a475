"""Tendons: weighted sums of joint positions, and paths through sites and around geoms.

Source: MuJoCo's XML Reference, tendon/fixed and tendon/spatial; manual, chapter Computation, section
Actuation model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from physics.algebra.spatial import MINVAL, NO_FORCE, Force, Motion, Vector, cross, dot, select, vector
from physics.dynamics.frame import GEOM, SITE, Frame, frame
from physics.dynamics.kinematics import Poses, dofs_above
from physics.dynamics.wrap import wrap
from physics.model.model import Model
from physics.state.state import State
from physics.trace.trace import Number, Truth, maximum, number, sqrt, where

JOINT, PULLEY, ON_SITE, SPHERE, CYLINDER = range(1, 6)  # mjtWrap


@dataclass(frozen=True)
class Tendons:
  """The lengths [m, rad] of all tendons, their velocities, and the effects of a unit of force along them."""

  length: list[Number]  # [ntendon]
  velocity: list[Number]  # [ntendon]
  jacobian: list[dict[int, Number]]  # [ntendon] moment arms: forces by degree of freedom
  pulls: list[dict[int, Force]]  # [ntendon] forces by body, about its tree origin; none of fixed tendons


@dataclass(frozen=True)
class _Path:
  """A part of a tendon: its length, moment arms by degree of freedom, pulls by body."""

  length: Number
  jacobian: dict[int, Number]
  pulls: dict[int, Force]

  def __add__(self, other: _Path) -> _Path:
    pulls = dict(self.pulls)
    for body, pull in other.pulls.items():
      pulls[body] = pulls.get(body, NO_FORCE) + pull
    a, b = self.jacobian, other.jacobian
    jacobian = {dof: a.get(dof, 0.0) + b.get(dof, 0.0) for dof in sorted({*a, *b})}
    return _Path(self.length + other.length, jacobian, pulls)

  def scaled(self, factor: Number) -> _Path:
    arms = {dof: arm * factor for dof, arm in self.jacobian.items()}
    return _Path(self.length * factor, arms, {body: pull * factor for body, pull in self.pulls.items()})

  def where(self, mask: Truth, other: _Path) -> _Path:
    """Return this path where the mask holds, else the other."""
    dofs = sorted({*self.jacobian, *other.jacobian})
    arms = {i: where(mask, self.jacobian.get(i, 0.0), other.jacobian.get(i, 0.0)) for i in dofs}
    pulls = {}
    for body in sorted({*self.pulls, *other.pulls}):
      one, two = (path.pulls.get(body, NO_FORCE) for path in (self, other))
      pulls[body] = Force(select(mask, one.torque, two.torque), select(mask, one.force, two.force))
    return _Path(where(mask, self.length, other.length), arms, pulls)


def tendons(model: Model, p: Poses, state: State) -> Tendons:
  """Return `ten_length`, `ten_velocity` and moment arms `ten_J` [ntendon] (MuJoCo's `mj_tendon`)."""
  paths = [
    _spatial(model, p, tendon) if is_spatial(model, tendon) else _fixed(model, state.qpos, tendon)
    for tendon in range(model.ntendon)
  ]
  velocity = [dot(path.jacobian.values(), [state.qvel[dof] for dof in path.jacobian]) for path in paths]
  return Tendons(
    length=[path.length for path in paths],
    velocity=velocity,
    jacobian=[path.jacobian for path in paths],
    pulls=[path.pulls for path in paths],
  )


def tendon_jacobian(model: Model, p: Poses, tendon: int) -> dict[int, Number]:
  """Return a tendon's moment arms by degree of freedom; a fixed tendon's do not depend on the pose."""
  return _spatial(model, p, tendon).jacobian if is_spatial(model, tendon) else fixed_jacobian(model, tendon)


def tendon_acceleration(
  model: Model, p: Poses, tendon: int, velocity: list[Motion], acceleration: list[Motion]
) -> Number:
  """Return the acceleration [m/s^2] of a tendon's length while no joint accelerates (`mj_tendonDot`).

  It comes from rotation: a fixed tendon's is zero. A spatial one passes sites and pulleys alone; where geoms
  are on a path, MuJoCo has no such acceleration either.
  """
  total: Number = 0.0
  if is_spatial(model, tendon):
    for start, rest, share in _sections(model, tendon):
      one, two = (frame(model, p, SITE, int(model.wrap_objid[part])) for part in (start, rest[0]))
      if one.body != two.body:
        rates = [_point_rates(end, velocity, acceleration) for end in (one, two)]
        total = total + share * _bend(two.offset(one), *(b - a for a, b in zip(*rates, strict=True)))
  return total


def _point_rates(end: Frame, velocity: list[Motion], acceleration: list[Motion]) -> tuple[Vector, Vector]:
  """Return velocity [m/s] and acceleration [m/s^2] of a frame's position, gravity included."""
  motion = velocity[end.body]
  rate = motion.at(end.position)
  return rate, acceleration[end.body].at(end.position) + cross(motion.angular, rate)


def _bend(line: Vector, velocity: Vector, acceleration: Vector) -> Number:
  """Return the acceleration [m/s^2] of a line's length, by its vector's velocity and acceleration."""
  length = sqrt(dot(line, line))
  inverse = where(length > MINVAL, 1.0 / maximum(length, MINVAL), 0.0)
  along = line * inverse
  across = velocity - along * dot(along, velocity)
  return dot(along, acceleration) + dot(across, across) * inverse


def is_spatial(model: Model, tendon: int) -> bool:
  """Return whether a tendon has a path."""
  return bool(model.tendon_num[tendon] and model.wrap_type[model.tendon_adr[tendon]] != JOINT)


def fixed_jacobian(model: Model, tendon: int) -> dict[int, Number]:
  """Return the moment arms of a fixed tendon by degree of freedom."""
  return {
    int(model.jnt_dofadr[model.wrap_objid[part]]): number(model.wrap_prm[part])
    for part in _parts(model, tendon)
  }


def _fixed(model: Model, qpos: list[Number], tendon: int) -> _Path:
  arms = fixed_jacobian(model, tendon)
  positions = [qpos[model.jnt_qposadr[model.dof_jntid[dof]]] for dof in arms]
  return _Path(dot(arms.values(), positions), arms, {})


def _parts(model: Model, tendon: int) -> range:
  """Return the indices of a tendon's joints, or of the sites, geoms and pulleys on its path."""
  first = int(model.tendon_adr[tendon])
  return range(first, first + int(model.tendon_num[tendon]))


def _spatial(model: Model, p: Poses, tendon: int) -> _Path:
  """Return a tendon with a path; a pulley divides the sections after it."""
  path = _Path(0.0, {}, {})
  for start, rest, share in _sections(model, tendon):
    path = path + _section(model, p, start, rest).scaled(share)
  return path


def _sections(model: Model, tendon: int) -> Iterator[tuple[int, list[int], Number]]:
  """Yield for each site that a path continues from: it, the parts after it, and 1 over pulley divisors."""
  share, parts = number(1.0), list(_parts(model, tendon))
  for start, rest in zip(parts, [parts[k + 1 :] for k in range(len(parts))], strict=True):
    if model.wrap_type[start] == PULLEY:
      share = 1.0 / number(model.wrap_prm[start])
    elif model.wrap_type[start] == ON_SITE and rest and model.wrap_type[rest[0]] != PULLEY:
      yield start, rest, share


def _section(model: Model, p: Poses, start: int, rest: list[int]) -> _Path:
  """Return the path from a site to the next one, around a geom if one is between them."""
  kind, between = int(model.wrap_type[rest[0]]), rest[0]
  one = frame(model, p, SITE, int(model.wrap_objid[start]))
  if kind == ON_SITE:
    return _straight(model, p, one, frame(model, p, SITE, int(model.wrap_objid[between])))
  two = frame(model, p, SITE, int(model.wrap_objid[rest[1]]))
  geom = frame(model, p, GEOM, int(model.wrap_objid[between]))
  radius, side = number(model.geom_size[model.wrap_objid[between], 0]), side_site(model, between)
  toward, inside = None, False
  if side >= 0:
    toward = frame(model, p, SITE, side).offset(geom)
    inside = passes_through(model, between)
  axis = geom.rotation if kind == CYLINDER else None
  found = wrap(axis, radius, (one.offset(geom), two.offset(geom)), toward, inside)
  touches = [_moved(geom, point) for point in found.points]
  around = _straight(model, p, one, touches[0]) + _straight(model, p, touches[1], two)
  around = around + _Path(found.length, {}, {})
  return around.where(found.wraps, _straight(model, p, one, two))


def side_site(model: Model, part: int) -> int:
  """Return the side site of a geom on a tendon's path, or -1."""
  return round(float(model.wrap_prm[part]))


def passes_through(model: Model, part: int) -> bool:
  """Return whether a tendon passes through a geom: its side site, on the same body, is inside."""
  geom, side = int(model.wrap_objid[part]), side_site(model, part)
  offset = vector(model.site_pos[side] - model.geom_pos[geom])
  return bool(dot(offset, offset) < model.geom_size[geom, 0] ** 2)


def _moved(at: Frame, offset: Vector) -> Frame:
  """Return a frame moved by a vector in world axes."""
  return Frame(at.body, at.origin, at.position + offset, at.quaternion, at.rotation)


def _straight(model: Model, p: Poses, one: Frame, two: Frame) -> _Path:
  """Return a line between points of two bodies."""
  line = two.offset(one)
  length = sqrt(dot(line, line))
  along = line * (1.0 / maximum(length, MINVAL))
  jacobian: dict[int, Number] = {}
  above = [dofs_above(model, end.body) for end in (one, two)]
  for sign, end, dofs, others in ((-1.0, one, above[0], above[1]), (1.0, two, above[1], above[0])):
    # Joints that move both ends leave the length unchanged.
    for dof in (dof for dof in dofs if dof not in others):
      jacobian[dof] = sign * dot(along, p.cdof[dof].at(end.position))
  ends = [
    _Path(0.0, {}, {end.body: Force.at(end.position, along * sign)})
    for sign, end in ((-1.0, one), (1.0, two))
  ]
  return _Path(length, jacobian, {}) + ends[0] + ends[1]
