"""MuJoCo C with the contacts that the engine found, where a search has several right answers."""

import copy
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtDisableBit, mjtIntegrator

from physics.model.model import Floats, Model
from physics.parity.contacts import (
  DISTANCE,
  GEOMS,
  MARGIN,
  NORMAL,
  POINT,
  WIDTH,
  contact_errors,
  mujoco_row,
  searched_pairs,
)

MEASURES = [DISTANCE, *range(POINT.start, NORMAL.stop)]  # of a contact's row: the results of a search
SAME = (1e-5, 1e-4, 1e-3)  # distance [m], position [m] and normal of contacts that are the same
WIDER = 1e-5  # [m] that a margin grows by, so that shapes which hardly touch have a contact to change
INTEGRATORS = {
  mjtIntegrator.mjINT_EULER: mujoco.mj_Euler,
  mjtIntegrator.mjINT_IMPLICITFAST: mujoco.mj_implicit,
}  # those that find contacts once per step

Geoms = frozenset[float]


class GivenContacts:
  """MuJoCo C in one state after another, with searched contacts given; it finds the others itself.

  Contacts of shapes with a formula are given too where the engine has others: some are flush, or overlap so
  deeply that two separations are equally short.
  """

  def __init__(self, model: Model) -> None:
    self._searched = searched_pairs(model)

  def forward(self, mj: mujoco.MjModel, data: mujoco.MjData, rows: Floats) -> None:
    """Run the stages of `mj_forward` from contacts `rows` [n, 12], see `traced_contacts`."""
    for stage in _BEFORE:
      stage(mj, data)
    kinds, own = self._by_itself(mj, data)
    chosen = self._searched | _differing(rows, [mujoco_row(mj, each) for each in own if not each.exclude])
    kept = [contact for contact in own if _geoms(contact) not in chosen]
    given = [_contact(mj, data, kinds[_geoms(row)], row) for row in rows if _geoms(row) in chosen]
    mujoco.mj_collision(_changed(mj, 0.0, mjtDisableBit.mjDSBL_CONTACT), data)  # empties the list
    for contact in (*kept, *given):
      mujoco.mj_addContact(mj, data, contact)
    for stage in _AFTER:
      stage(mj, data)

  def knows(self, mj: mujoco.MjModel, data: mujoco.MjData, rows: Floats) -> bool:
    """Return whether MuJoCo's shapes touch too, or nearly, wherever the engine has contacts."""
    mujoco.mj_fwdPosition(mj, data)
    kinds, _ = self._by_itself(mj, data)
    return all(_geoms(row) in kinds for row in rows)

  def step(self, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Integrate after `forward`, where the model's integrator is one of `INTEGRATORS`."""
    INTEGRATORS[mjtIntegrator(mj.opt.integrator)](mj, data)

  def _by_itself(self, mj: mujoco.MjModel, data: mujoco.MjData) -> tuple[dict[Geoms, Any], list[Any]]:
    """Return one contact of each pair of geoms that touch or nearly do, and all of MuJoCo's own contacts."""
    mujoco.mj_collision(_changed(mj, WIDER), data)
    kinds = {_geoms(contact): copy.copy(contact) for contact in data.contact}
    mujoco.mj_collision(mj, data)
    return kinds, [copy.copy(contact) for contact in data.contact]


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


def _geoms(contact: Any) -> Geoms:
  """Return the geoms of one of MuJoCo's contacts, or of a row."""
  return frozenset((contact[GEOMS] if isinstance(contact, np.ndarray) else contact.geom).tolist())


def _differing(rows: Iterable[Floats], others: Iterable[Floats]) -> set[Geoms]:
  """Return the pairs of geoms with different contacts in two lists."""

  def of(geoms: Geoms, each: Iterable[Floats]) -> Floats:
    return np.array([row for row in each if _geoms(row) == geoms]).reshape(-1, WIDTH)

  pairs = {_geoms(row) for row in (*rows, *others)}
  errors = {geoms: contact_errors([of(geoms, rows)], [of(geoms, others)], 0.0)[:, 0] for geoms in pairs}
  return {geoms for geoms, error in errors.items() if (error > SAME).any()}


def _changed(mj: mujoco.MjModel, wider: float, disabled: int = 0) -> mujoco.MjModel:
  mj = copy.copy(mj)
  mj.geom_margin += wider
  mj.pair_margin += wider
  mj.opt.o_margin += wider
  mj.opt.disableflags |= int(disabled)
  return mj


def _contact(mj: mujoco.MjModel, data: mujoco.MjData, kind: Any, row: Floats) -> Any:
  """Return MuJoCo's contact of a pair of geoms, moved to where the engine found it."""
  contact = copy.copy(kind)
  still_second = mj.body_treeid[mj.geom_bodyid[int(row[GEOMS][1])]] < 0  # the normal points to the moving one
  turned = still_second != (contact.geom[0] != row[GEOMS][0])
  contact.dist, contact.pos[:], contact.includemargin = row[DISTANCE], row[POINT], row[MARGIN]
  contact.frame[:] = _frame(-row[NORMAL] if turned else row[NORMAL])
  contact.exclude = int(row[DISTANCE] >= row[MARGIN])
  contact.surfacevel[:] = _surface_velocity(mj, data, contact)
  return contact


def _surface_velocity(mj: mujoco.MjModel, data: mujoco.MjData, contact: Any) -> Floats:
  """Return the velocity [3] of the second geom's surface along both tangents and about the normal."""
  linear, angular = np.zeros(3), np.zeros(3)
  for geom, sign in zip(contact.geom, (-1.0, 1.0), strict=True):
    along, about = (data.geom_xmat[geom].reshape(3, 3) @ mj.geom_surfacevel[geom].reshape(2, 3).T).T
    linear += sign * (along + np.cross(about, contact.pos - data.geom_xpos[geom]))
    angular += sign * about
  normal, first, second = contact.frame.reshape(3, 3)
  return np.array([first @ linear, second @ linear, normal @ angular])


def _frame(normal: Floats) -> Floats:
  """Return a contact's axes [9], the normal first (MuJoCo's `mju_makeFrame`)."""
  hint = np.eye(3)[1 if abs(normal[1]) < 0.5 else 2]
  first = hint - normal * (normal @ hint)
  first /= np.linalg.norm(first)
  return np.concatenate([normal, first, np.cross(normal, first)])
