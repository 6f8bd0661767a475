"""MuJoCo C with the contacts that the engine found, where a search has several right answers."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtDisableBit, mjtIntegrator

from physics.collision.narrow import is_searched
from physics.model.model import Floats, Model
from physics.parity.contacts import DISTANCE, GEOMS, MARGIN, NORMAL, POINT

MEASURES = [DISTANCE, *range(POINT.start, NORMAL.stop)]  # of a contact's row: what is searched for
WIDER = 1e-5  # [m] that a margin grows by, so that shapes which hardly touch have a contact to change
INTEGRATORS = {
  mjtIntegrator.mjINT_EULER: mujoco.mj_Euler,
  mjtIntegrator.mjINT_IMPLICITFAST: mujoco.mj_implicit,
}  # those that find contacts once per step

Geoms = frozenset[float]


class GivenContacts:
  """MuJoCo C in one state after the other, whose searched contacts are given; it finds the others itself."""

  def __init__(self, model: Model) -> None:
    self._searched = {frozenset((pair.geom1, pair.geom2)) for pair in model.pairs if is_searched(model, pair)}

  def forward(self, mj: mujoco.MjModel, data: mujoco.MjData, rows: Floats) -> None:
    """Compute what `mj_forward` does from contacts `rows` [n, 12], see `traced_contacts`."""
    for stage in _BEFORE:
      stage(mj, data)
    kinds, kept = self._by_itself(mj, data)
    given = [_contact(mj, data, kinds[frozenset(row[GEOMS])], row) for row in rows if self._is_searched(row)]
    mujoco.mj_collision(_changed(mj, 0.0, mjtDisableBit.mjDSBL_CONTACT), data)  # empties the list
    for contact in (*kept, *given):
      mujoco.mj_addContact(mj, data, contact)
    for stage in _AFTER:
      stage(mj, data)

  def knows(self, mj: mujoco.MjModel, data: mujoco.MjData, rows: Floats) -> bool:
    """Return whether MuJoCo's shapes touch too, or nearly, wherever the engine has contacts."""
    mujoco.mj_fwdPosition(mj, data)
    kinds, _ = self._by_itself(mj, data)
    return all(frozenset(row[GEOMS]) in kinds for row in rows)

  def step(self, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Integrate after `forward`, where the model's integrator is one of `INTEGRATORS`."""
    INTEGRATORS[mjtIntegrator(mj.opt.integrator)](mj, data)

  def _by_itself(self, mj: mujoco.MjModel, data: mujoco.MjData) -> tuple[dict[Geoms, Any], list[Any]]:
    """Return a contact of each pair of geoms that touch, and all contacts that are not searched."""
    mujoco.mj_collision(_changed(mj, WIDER), data)
    kinds = {frozenset(contact.geom.tolist()): copy.copy(contact) for contact in data.contact}
    mujoco.mj_collision(mj, data)
    found = [copy.copy(contact) for contact in data.contact]
    return kinds, [each for each in found if frozenset(each.geom.tolist()) not in self._searched]

  def _is_searched(self, row: Floats) -> bool:
    return frozenset(row[GEOMS]) in self._searched


_BEFORE = (
  mujoco.mj_kinematics,
  mujoco.mj_comPos,
  mujoco.mj_camlight,
  mujoco.mj_flex,
  mujoco.mj_tendon,
  mujoco.mj_makeM,
  mujoco.mj_factorM,
)
_AFTER = (
  mujoco.mj_makeConstraint,
  mujoco.mj_island,
  mujoco.mj_projectConstraint,
  mujoco.mj_transmission,
  mujoco.mj_sensorPos,
  mujoco.mj_fwdVelocity,
  mujoco.mj_sensorVel,
  mujoco.mj_fwdActuation,
  mujoco.mj_fwdAcceleration,
  mujoco.mj_fwdConstraint,
  mujoco.mj_sensorAcc,
)


def _changed(mj: mujoco.MjModel, wider: float, disabled: int = 0) -> mujoco.MjModel:
  mj = copy.copy(mj)
  mj.geom_margin += wider
  mj.pair_margin += wider
  mj.opt.disableflags |= int(disabled)
  return mj


def _contact(mj: mujoco.MjModel, data: mujoco.MjData, kind: Any, row: Floats) -> Any:
  """Return MuJoCo's contact of a pair of geoms, moved to where the engine found it."""
  contact = copy.copy(kind)
  still_second = mj.body_treeid[mj.geom_bodyid[int(row[GEOMS][1])]] < 0  # its normal is towards what moves
  turned = still_second != (contact.geom[0] != row[GEOMS][0])
  contact.dist, contact.pos[:], contact.includemargin = row[DISTANCE], row[POINT], row[MARGIN]
  contact.frame[:] = _frame(-row[NORMAL] if turned else row[NORMAL])
  contact.exclude = int(row[DISTANCE] >= row[MARGIN])
  contact.surfacevel[:] = _surface_velocity(mj, data, contact)
  return contact


def _surface_velocity(mj: mujoco.MjModel, data: mujoco.MjData, contact: Any) -> Floats:
  """Return the motion of the second surface relative to the first: along both tangents, about the normal."""
  axes, velocity, spin = contact.frame.reshape(3, 3), np.zeros(3), np.zeros(3)
  for geom, sign in zip(contact.geom, (-1.0, 1.0), strict=True):
    turned = data.geom_xmat[geom].reshape(3, 3)
    linear, angular = (turned @ part for part in np.split(mj.geom_surfacevel[geom], 2))
    velocity += sign * (linear + np.cross(angular, contact.pos - data.geom_xpos[geom]))
    spin += sign * angular
  return np.array([*axes[1:] @ velocity, axes[0] @ spin])


def _frame(normal: Floats) -> Floats:
  """Return a contact's axes [9], the first of which is the normal (MuJoCo's `mju_makeFrame`)."""
  hint = np.eye(3)[1 if abs(normal[1]) < 0.5 else 2]
  first = hint - normal * (normal @ hint)
  first /= np.linalg.norm(first)
  return np.concatenate([normal, first, np.cross(normal, first)])
