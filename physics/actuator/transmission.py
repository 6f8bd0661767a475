"""Transmissions: length and moment arms of the joint, tendon, site, crank or body that actuators act on.

Source: MuJoCo's manual, chapter Computation, section Transmission; XML Reference, actuator/general,
attributes joint, jointinparent, tendon, site, refsite, cranksite, slidersite and cranklength.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from physics.algebra.spatial import ZERO, Force, Quaternion, Vector, cross, dot
from physics.dynamics.frame import SITE as SITE_FRAME
from physics.dynamics.frame import Frame, frame
from physics.dynamics.kinematics import BALL, FREE, Poses, dofs_above
from physics.dynamics.tendon import Tendons
from physics.model.model import Model
from physics.trace.trace import Number, is_zero, number, sqrt, where

JOINT, IN_PARENT, CRANK, TENDON, SITE, BODY = range(6)  # mjtTrn
Pulls: TypeAlias = Mapping[int, Mapping[int, Number]]  # moment arms of the pull on bodies, by body and dof


@dataclass(frozen=True)
class Transmission:
  """A transmission: joint force is force times moment, velocity is moment times qvel."""

  length: Number  # [m, rad], scaled by the gear
  moment: dict[int, Number]  # by dof
  period: Number = 0.0  # of a length on a circle; zero: it is on a line

  def velocity(self, qvel: list[Number]) -> Number:
    """Return the rate of change of the length [m/s, rad/s]."""
    return dot(self.moment.values(), [qvel[dof] for dof in self.moment])


def adhesive_bodies(model: Model) -> list[int]:
  """Return the bodies with adhesion actuators."""
  targets = zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
  return sorted({int(body) for kind, body in targets if kind == BODY})


def transmission(
  model: Model, p: Poses, tendons: Tendons, qpos: list[Number], actuator: int, pulls: Pulls
) -> Transmission:
  """Return the transmission of an actuator at positions `qpos` [nq] (MuJoCo's `mj_transmission`)."""
  kind, (target, reference) = model.actuator_trntype[actuator], model.actuator_trnid[actuator].tolist()
  gear = [number(x) for x in model.actuator_gear[actuator]]
  if kind == TENDON:
    moment = {dof: arm * gear[0] for dof, arm in tendons.jacobian[target].items()}
    return Transmission(tendons.length[target] * gear[0], moment)
  if kind == SITE:
    site = frame(model, p, SITE_FRAME, target)
    if reference < 0:
      return Transmission(0.0, _moment(p, site, site, gear, dofs_above(model, site.body)))
    return _between_sites(model, p, site, frame(model, p, SITE_FRAME, reference), gear)
  if kind == BODY:
    return Transmission(0.0, dict(pulls.get(target, {})))
  if kind == CRANK:
    rod = number(model.actuator_cranklength[actuator])
    crank, slider = (frame(model, p, SITE_FRAME, site) for site in (target, reference))
    return _slider_crank(model, p, crank, slider, rod, gear[0])
  return _at_joint(model, target, qpos, gear, in_parent=kind == IN_PARENT)


def _at_joint(
  model: Model, joint: int, qpos: list[Number], gear: list[Number], in_parent: bool
) -> Transmission:
  """Return the transmission to a joint; rotations of ball and free joints about child or parent axes."""
  at, dof, kind = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), model.jnt_type[joint]
  if kind not in (FREE, BALL):
    return Transmission(gear[0] * qpos[at], {dof: gear[0]})
  at, axis = (at + 3, Vector(*gear[3:])) if kind == FREE else (at, Vector(*gear[:3]))
  rotation = Quaternion.normalize(qpos[at : at + 4])
  local = rotation.matrix().transposed @ axis if in_parent else axis
  if kind == FREE:
    return Transmission(0.0, {dof + k: arm for k, arm in enumerate((*gear[:3], *local))})
  turned, angle = rotation.rotation_vector()
  moment = {dof + k: arm for k, arm in enumerate(local)}
  return Transmission(dot(turned * angle, axis), moment, _period(axis))


def _between_sites(model: Model, p: Poses, site: Frame, base: Frame, gear: list[Number]) -> Transmission:
  """Return the transmission along a site's pose in the frame of another, without joints that move both."""
  along, about = Vector(*gear[:3]), Vector(*gear[3:])
  axis, angle = (base.quaternion.conjugate * site.quaternion).rotation_vector()
  length = dot(base.rotation.transposed @ site.offset(base), along) + dot(axis * angle, about)
  one, two = dofs_above(model, site.body), dofs_above(model, base.body)
  moment = _moment(p, site, base, gear, [dof for dof in one if dof not in two])
  reaction = _moment(p, base, base, gear, [dof for dof in two if dof not in one])
  moment |= {dof: -arm for dof, arm in reaction.items()}
  return Transmission(length, moment, _period(about) if all(is_zero(x) for x in along) else 0.0)


def _slider_crank(
  model: Model, p: Poses, crank: Frame, slider: Frame, rod: Number, gear: Number
) -> Transmission:
  """Return the transmission to a slider on its site's z axis, joined to a crank by a rod.

  Where the rod does not reach the axis, the slider is beside the crank.
  """
  axis, offset = slider.rotation.column(2), crank.offset(slider)
  along = dot(axis, offset)
  square = along * along + rod * rod - dot(offset, offset)  # of the rod's part along the axis
  reaches = square > 0.0
  inverse = where(reaches, 1.0 / sqrt(where(reaches, square, 1.0)), 0.0)
  length = along - square * inverse
  by_axis = 1.0 - along * inverse
  push = (axis * by_axis + offset * inverse) * gear  # the length's derivative by the offset
  turn = cross(axis, offset) * (by_axis * gear)  # and by the slider's rotation
  one, two = dofs_above(model, crank.body), dofs_above(model, slider.body)
  at_crank = Force.at(crank.position, push)
  at_slider = Force.at(slider.position, push * -1.0) + Force(turn, ZERO)
  moment = {dof: at_crank.power(p.cdof[dof]) for dof in one if dof not in two}
  moment |= {dof: at_slider.power(p.cdof[dof]) for dof in two if dof not in one}
  return Transmission(length * gear, moment)


def _moment(p: Poses, site: Frame, axes: Frame, gear: list[Number], dofs: Iterable[int]) -> dict[int, Number]:
  """Return the joint forces of a unit force and torque at a site, along the axes of a frame."""
  force, torque = (axes.rotation @ Vector(*part) for part in (gear[:3], gear[3:]))
  wrench = Force.at(site.position, force) + Force(torque, ZERO)
  return {dof: wrench.power(p.cdof[dof]) for dof in dofs}


def _period(axis: Vector) -> Number:
  return 2.0 * math.pi * sqrt(dot(axis, axis))
