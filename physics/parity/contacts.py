"""Contact points of both engines, compared per pair of bodies in any order."""

import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mujoco
import numpy as np

from physics.algebra.spatial import Vector
from physics.collision.narrow import is_searched
from physics.collision.segment import COINCIDENT
from physics.constraint.contact import MovingContacts, WorldContacts
from physics.constraint.moving import WORD_BITS, common_origin
from physics.convex.features import ALIGNED
from physics.forward import detect_contacts
from physics.model.model import Bools, Floats, Model
from physics.parity.states import States
from physics.smooth import smooth_dynamics
from physics.state.layout import Layout
from physics.state.state import Memory
from physics.trace.compact import Entry
from physics.trace.emit_numpy import numpy_function
from physics.trace.trace import Number, Program, has_bit, where

# A contact is a row: first and second body (a static one is 0), distance and margin [m], point [m], normal,
# both geoms.
BODIES, DISTANCE, MARGIN, POINT, NORMAL, GEOMS = slice(0, 2), 2, 3, slice(4, 7), slice(7, 10), slice(10, 12)
WIDTH = 12
CORNERS = 4  # of two faces that become contacts
FLAT = 1e-6  # size of a direction out of their plane, relative to the plane
EXACTLY = 1e-14  # distance [m] of points that are one but for rounding: both engines take the same normal


def mujoco_contacts(mj: mujoco.MjModel, states: States) -> list[Floats]:
  """Return the contacts [n, 12] that MuJoCo C finds in each state; the normal points to the second body."""
  rows = [[mujoco_row(mj, contact) for contact in found] for found in _found_by_mujoco(mj, states)]
  return [np.array(each).reshape(-1, WIDTH) for each in rows]


def marginal(mj: mujoco.MjModel, states: States, distance: float) -> Bools:
  """Return in which states [num_states] some contact is within about `distance` [m] of its margin."""
  mj = copy.copy(mj)
  mj.geom_margin += distance
  mj.opt.o_margin += distance
  mj.pair_margin += distance  # a contact's margin is the sum of its geoms', or its pair's
  nearly = [rows[:, DISTANCE] - rows[:, MARGIN] > -3.0 * distance for rows in mujoco_contacts(mj, states)]
  return np.array([any(each) for each in nearly])


def nearly_coincident(mj: mujoco.MjModel, states: States) -> Bools:
  """Return in which states [num_states] axes of capsules, or centres of spheres, nearly meet.

  The engine then takes a normal across both, as float32 has to; MuJoCo takes the direction from one to the
  other, down to 1e-15 m.
  """
  is_round = np.isin(mj.geom_type, (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE))
  gaps = [
    [each.dist + mj.geom_size[each.geom, 0].sum() for each in found if is_round[each.geom].all()]
    for found in _found_by_mujoco(mj, states)
  ]
  return np.array([any(EXACTLY < gap < COINCIDENT for gap in each) for each in gaps])


def _found_by_mujoco(mj: mujoco.MjModel, states: States) -> Iterator[list[Any]]:
  """Yield MuJoCo's contacts in each state, which last until the next."""
  data = mujoco.MjData(mj)
  for index in range(len(states)):
    mujoco.mj_resetData(mj, data)
    states.load(index, data)
    mujoco.mj_forward(mj, data)
    yield [contact for contact in data.contact if contact.exclude == 0]


def mujoco_row(mj: mujoco.MjModel, contact: Any) -> Floats:
  """Return one of MuJoCo's contacts as a row [12]."""
  bodies = mj.geom_bodyid[contact.geom]
  bodies = np.where(mj.body_treeid[bodies] < 0, 0, bodies)
  normal = contact.frame[:3]
  if bodies[1] == 0:
    bodies, normal = bodies[::-1], -normal
  return np.array([*bodies, contact.dist, _limit(mj, contact), *contact.pos, *normal, *contact.geom])


def _limit(mj: mujoco.MjModel, contact: Any) -> float:
  """Return the distance [m] below which a contact acts: with adhesion it does so in its gap."""
  pairs = zip(mj.pair_geom1, mj.pair_geom2, mj.pair_gap, strict=True)
  own = [gap for one, two, gap in pairs if {one, two} == set(contact.geom.tolist())]
  gap = own[0] if own else mj.geom_gap[contact.geom].sum()
  return float(contact.includemargin + (gap if contact.adhesion else 0.0))


def searched_pairs(model: Model) -> set[frozenset[int]]:
  """Return the pairs of geoms with searched contacts; the others have a formula."""
  return {frozenset((pair.geom1, pair.geom2)) for pair in model.pairs if is_searched(model, pair)}


def traced_contacts(model: Model, states: States, dtype: type[np.floating] = np.float64) -> list[Floats]:
  """Return the contacts [n, 12] that the traced program, run by NumPy, finds in each state."""
  search, most = _search(model)
  layout = Layout(model, ())
  rows = np.full((max(1, most * WIDTH), len(states)), np.nan, dtype)
  state = np.zeros((layout.rows, len(states)), dtype)
  for name, values in states.parts():
    if name in layout:
      block = layout.blocks[name]
      state[block.start : block.start + block.rows] = values.reshape(len(states), -1).T
  if search:
    with np.errstate(all="ignore"):
      search(state=state, control=rows)
  return written_contacts(rows, most)


def written_contacts(rows: Floats, most: int) -> list[Floats]:
  """Return by state the contacts [n, 12] that a traced search has written to `rows` of nan [row, state]."""
  slots = rows[: most * WIDTH].T.reshape(-1, most, WIDTH)
  return [slot[~np.isnan(slot[:, 0])].astype(float) for slot in slots]


@functools.lru_cache(maxsize=2)
def _search(model: Model) -> tuple[Callable[..., None] | None, int]:
  """Return the traced search, a function of the arrays `state` and `control`, and the most that it finds.

  The function is None for a model without pairs.
  """
  program, most = trace_search(model, Layout(model, ()))
  return (numpy_function(program) if most else None), most


def trace_search(model: Model, layout: Layout) -> tuple[Program, int]:
  """Return a program that writes contacts as rows [12] to `control`, and the most that it finds."""
  program = Program()
  memory = Memory(program, layout)
  smooth = smooth_dynamics(model, memory.state([0.0] * model.nu))
  contacts = detect_contacts(program, model, smooth)
  starts = [0, *itertools.accumulate(kind.found.capacity for kind in contacts.kinds)]
  for start, kind in zip(starts, contacts.kinds, strict=False):
    with kind.found.each() as entry:
      row = _describe_world(kind, entry) if isinstance(kind, WorldContacts) else _describe_moving(kind, entry)
      exists = entry["weight"] > 0.0
      for k, value in enumerate(row):
        program.write_memory("control", (entry.index + start) * WIDTH + k, value, exists)
  return program.finish(), starts[-1]


def _describe_world(kind: WorldContacts, entry: Entry) -> list[Number]:
  program, p = kind.program, kind.p
  origins = program.array(3 * len(kind.bodies))
  origins.fill([x for body in kind.bodies for x in p.origin[body]])
  point = Vector(*entry.vector("point")) + Vector(*origins.read(entry["body"] * 3, 3))
  body = program.table([float(b) for b in range(kind.model.nbody)], entry["geom_body"])
  return [0.0, body, *_common(entry, point)]


def _describe_moving(kind: MovingContacts, entry: Entry) -> list[Number]:
  point = Vector(*entry.vector("point")) + common_origin(kind.model, kind.p, kind.moving)
  bodies = [_owner(kind, entry, name) for name in ("owner1", "owner2")]
  return [*bodies, *_common(entry, point)]


def _common(entry: Entry, point: Vector) -> list[Number]:
  geoms = entry["geom1"], entry["geom2"]
  return [entry["distance"], entry["margin"], *point, *entry.vector("normal"), *geoms]


def _owner(kind: MovingContacts, entry: Entry, name: str) -> Number:
  owner: Number = 0.0
  for position, body in enumerate(kind.moving.owners):
    owns = has_bit(entry[f"{name}{position // WORD_BITS}"], position % WORD_BITS)
    owner = owner + where(owns, float(body), 0.0)
  return owner


def contact_errors(found: Sequence[Floats], expected: Sequence[Floats], grazing: float) -> Floats:
  """Return per state the largest errors [3, num_states] of distance [m], position [m] and normal.

  Each contact is compared with the nearest one of its pair of bodies. The error is infinite where one has
  no partner, unless its distance is within `grazing` [m] of the margin: rounding decides whether it exists.
  """
  return np.array([_state_errors(a, b, grazing) for a, b in zip(found, expected, strict=True)]).T


def other_corners(found: Sequence[Floats], expected: Sequence[Floats], tolerances: Sequence[float]) -> Bools:
  """Return in which states [num_states] contacts differ only in the choice of a polygon's corners.

  Per pair of bodies and normal there are then as many contacts, their depths grow along the same plane, and
  the deepest is as deep or deeper. `tolerances` are for distance [m], position [m] and normal.
  """
  return np.array([is_other_choice(a, b, tolerances) for a, b in zip(found, expected, strict=True)], bool)


def is_other_choice(found: Floats, expected: Floats, tolerances: Sequence[float]) -> bool:
  """Return whether contacts of one state are other corners of the same faces, see `other_corners`."""
  while len(expected):
    mine, its = (alongside(rows, expected[0], tolerances[-1]) for rows in (found, expected))
    if not _on_one_plane(found[mine], expected[its], tolerances):
      return False
    found, expected = found[~mine], expected[~its]
  return not len(found)


def alongside(rows: Floats, contact: Floats, tolerance: float) -> Bools:
  """Return which contacts [n] are between the bodies of another one, and have its normal."""
  between = (rows[:, BODIES] == contact[BODIES]).all(axis=1)
  return np.asarray(between & (np.abs(rows[:, NORMAL] - contact[NORMAL]).max(axis=1) <= tolerance))


def _on_one_plane(found: Floats, expected: Floats, tolerances: Sequence[float]) -> bool:
  """Return whether contacts of one normal are the same ones, or lie on a plane that four or more span."""
  if len(found) != len(expected) or (_state_errors(found, expected, 0.0) <= tolerances).all():
    return len(found) == len(expected)
  if len(expected) < CORNERS:
    return False
  depth, point = expected[:, DISTANCE].mean(), expected[:, POINT].mean(axis=0)
  slope = np.linalg.lstsq(expected[:, POINT] - point, expected[:, DISTANCE] - depth, rcond=FLAT)[0]
  error = np.abs(depth + (found[:, POINT] - point) @ slope - found[:, DISTANCE]).max()
  shallower = found[:, DISTANCE].min() - expected[:, DISTANCE].min()
  return bool(max(error, shallower) <= tolerances[0])


def one_point(model: Model) -> Model:
  """Return the model with one contact for searched shapes, where the search ends: none of faces."""
  mj = copy.copy(model.mj)
  mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MULTICCD
  return dataclasses.replace(model, multiccd=False, mj=mj)


def other_faces(
  found: Sequence[Floats], ours: Sequence[Floats], theirs: Sequence[Floats], tolerances: Sequence[float]
) -> Bools:
  """Return in which states [num_states] contacts `found` are of faces that the search may take.

  `ours` and `theirs` are the contacts of both engines where searched shapes have one each: their distances
  and normals have to agree. Contacts of faces have their normals within MuJoCo's angle of those. Of several
  such faces, both engines take the first that has the last triangle of their search.
  """
  each = zip(found, ours, theirs, strict=True)
  return np.array([along_its_search(*rows, tolerances) for rows in each], bool)


def along_its_search(found: Floats, ours: Floats, theirs: Floats, tolerances: Sequence[float]) -> bool:
  """Return whether contacts of one state are on faces near an agreed search, see `other_faces`."""
  distance, _, normal = _state_errors(ours, theirs, 0.0)
  if distance > tolerances[0] or normal > tolerances[-1]:
    return False
  same_bodies = (found[:, None, BODIES] == theirs[None, :, BODIES]).all(-1)
  near = same_bodies & (found[:, NORMAL] @ theirs[:, NORMAL].T >= ALIGNED - tolerances[-1])
  return bool(near.any(axis=1).all() and near.any(axis=0).all())


def _state_errors(found: Floats, expected: Floats, grazing: float) -> Floats:
  gap = np.abs(found[:, None] - expected[None])
  distance, position, normal = gap[..., DISTANCE], gap[..., POINT].max(-1), gap[..., NORMAL].max(-1)
  cost = np.where((gap[..., BODIES] > 0).any(-1), np.inf, position + distance)
  worst = np.zeros(3)
  left, right = set(range(len(found))), set(range(len(expected)))
  while np.isfinite(cost).any():
    i, j = np.unravel_index(np.argmin(cost), cost.shape)
    worst = np.maximum(worst, [distance[i, j], position[i, j], normal[i, j]])
    cost[i], cost[:, j] = np.inf, np.inf
    left.remove(int(i))
    right.remove(int(j))
  lonely = np.concatenate([found[sorted(left)], expected[sorted(right)]])
  grazes = np.abs(lonely[:, DISTANCE] - lonely[:, MARGIN]) <= grazing
  return worst if grazes.all() else np.full(3, np.inf)
