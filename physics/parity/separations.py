"""Separating directions: which contacts are right where MuJoCo C has others, judged by the shapes alone.

Where shapes overlap, or lie flush, a search has several answers: of two equally short separations each
engine takes its first, and MuJoCo C's contacts of faces may push along one that its search did not find.
"""

from collections.abc import Sequence

import mujoco
import numpy as np
from mujoco import mjtGeom

from physics.model.model import Bools, Floats, Model
from physics.parity.contacts import (
  DISTANCE,
  GEOMS,
  MARGIN,
  NORMAL,
  POINT,
  along_its_search,
  alongside,
  contact_errors,
  is_other_choice,
  searched_pairs,
)
from physics.parity.states import States

PARALLEL = 1e-3  # largest difference between normals of one face
Found = Sequence[Floats]  # rows of contacts per state, see `traced_contacts`


def right_contacts(model: Model, states: States, contacts: Sequence[Found], tolerances: Floats) -> Bools:
  """Return in which states [num_states] the engine's contacts are right, whichever others MuJoCo C has.

  For each pair of geoms they have to be the same, or other corners of the same faces, or to lie along the
  search on which both engines agree, or along a separation that is as short as MuJoCo C's, or shorter. Where
  shapes have a formula, flush contacts may be others.
  `contacts` are the engine's and MuJoCo C's, then both where shapes have one each; `tolerances` are for
  distance [m], position [m] and normal, and for a distance that rounding decides about [m].
  """
  shapes, right, searched = _Shapes(model.mj), [], searched_pairs(model)
  for index, rows in enumerate(zip(*contacts, strict=True)):
    shapes.place(states, index)
    pairs = {frozenset(row[GEOMS]) for each in rows for row in each}
    of_pairs = ((pair in searched, [_of(pair, each) for each in rows]) for pair in pairs)
    right.append(all(_is_right(each, is_searched, shapes, tolerances) for is_searched, each in of_pairs))
  return np.array(right, bool)


class _Shapes:
  """The shapes of a model in one state, and their overlap along a direction."""

  def __init__(self, mj: mujoco.MjModel) -> None:
    self._mj, self._data = mj, mujoco.MjData(mj)

  def place(self, states: States, index: int) -> None:
    """Place the shapes as in a state."""
    mujoco.mj_resetData(self._mj, self._data)
    states.load(index, self._data)
    mujoco.mj_kinematics(self._mj, self._data)

  def overlap(self, row: Floats) -> float:
    """Return the overlap [m] of a contact's shapes along its normal; nan for a height field."""
    first, second = (int(geom) for geom in row[GEOMS])
    is_turned = self._mj.body_treeid[self._mj.geom_bodyid[second]] < 0  # it points to the moving body
    normal = -row[NORMAL] if is_turned else row[NORMAL]
    between = normal @ (self._data.geom_xpos[first] - self._data.geom_xpos[second])
    return float(between + self._reach(first, normal) + self._reach(second, -normal))

  def stands(self, rows: Floats, tolerances: Floats) -> bool:
    """Return whether a mesh stands on a plane, and contacts are at vertices, the lowest among them."""
    plane, mesh = (int(geom) for geom in rows[0, GEOMS])
    kinds = self._mj.geom_type[plane], self._mj.geom_type[mesh]
    if kinds != (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_MESH):
      return False
    centre, normal = self._data.geom_xpos[mesh], self._data.geom_xmat[plane].reshape(3, 3)[:, 2]
    vertices = centre + self._vertices(mesh) @ self._data.geom_xmat[mesh].reshape(3, 3).T
    heights = np.sort((vertices - self._data.geom_xpos[plane]) @ normal)
    at = rows[:, POINT] + normal * rows[:, DISTANCE, None] / 2
    apart = np.linalg.norm(at[:, None] - vertices, axis=-1).min(axis=1)
    deepest = abs(rows[:, DISTANCE].min() - heights[0])
    is_lowest = apart.max() <= tolerances[1] and deepest <= tolerances[0]
    return bool(is_lowest and heights[1] - heights[0] <= tolerances[3])

  def _reach(self, geom: int, direction: Floats) -> float:
    """Return a shape's extent [m] from its centre in a direction."""
    size, d = self._mj.geom_size[geom], direction @ self._data.geom_xmat[geom].reshape(3, 3)
    reaches = {
      mjtGeom.mjGEOM_SPHERE: lambda: size[0],
      mjtGeom.mjGEOM_CAPSULE: lambda: size[0] + size[1] * abs(d[2]),
      mjtGeom.mjGEOM_ELLIPSOID: lambda: np.linalg.norm(size * d),
      mjtGeom.mjGEOM_CYLINDER: lambda: size[0] * np.hypot(d[0], d[1]) + size[1] * abs(d[2]),
      mjtGeom.mjGEOM_BOX: lambda: size @ np.abs(d),
      mjtGeom.mjGEOM_MESH: lambda: np.max(self._vertices(geom) @ d),
    }
    return float(reaches.get(mjtGeom(self._mj.geom_type[geom]), lambda: np.nan)())

  def _vertices(self, geom: int) -> Floats:
    mesh = self._mj.geom_dataid[geom]
    start, count = self._mj.mesh_vertadr[mesh], self._mj.mesh_vertnum[mesh]
    return np.asarray(self._mj.mesh_vert[start : start + count], float)


def _of(pair: frozenset[float], rows: Floats) -> Floats:
  return rows[[frozenset(row[GEOMS]) == pair for row in rows]] if len(rows) else rows


def _is_right(rows: Sequence[Floats], is_searched: bool, shapes: _Shapes, tolerances: Floats) -> bool:
  """Judge the contacts of one pair of geoms: found and expected ones, and both searches'.

  A formula may find another separation than MuJoCo's, but has to agree along the one that it finds. On a
  plane contacts are of a face at the lowest vertex; a mesh that stands has several such faces.
  """
  found, expected, ours, theirs = rows
  same, grazing = tolerances[:3].tolist(), tolerances[3]
  if is_other_choice(found, expected, same):
    return True
  if not is_searched:
    deep = [each[np.abs(each[:, DISTANCE] - each[:, MARGIN]) > grazing] for each in (found, expected)]
    if (contact_errors(deep[:1], deep[1:], 0.0)[:, 0] <= same).all():
      return True
    if any(alongside(expected, row, PARALLEL).any() for row in found):
      return shapes.stands(found, tolerances)
  elif len(found) and along_its_search(found, ours, theirs, same):
    return True
  if not len(found) or not len(expected) + len(theirs):
    return all((np.abs(each[:, DISTANCE] - each[:, MARGIN]) <= grazing).all() for each in rows)
  ways = (*_ways(expected), *_ways(theirs))  # MuJoCo C's contacts of a cylinder's side may be none
  shortest = min(
    (way for way, row in ways if abs(shapes.overlap(row) - way) <= tolerances[0]), default=np.nan
  )
  return all(
    abs(shapes.overlap(row) - way) <= tolerances[0] and way <= shortest + tolerances[0]
    for way, row in _ways(found)
  )


def _ways(rows: Floats) -> list[tuple[float, Floats]]:
  """Return the depth [m] of the deepest contact along each normal, and that contact."""
  ways = []
  while len(rows):
    along = alongside(rows, rows[0], PARALLEL)
    deepest = rows[along][np.argmin(rows[along, DISTANCE])]
    ways.append((-float(deepest[DISTANCE]), deepest))
    rows = rows[~along]
  return ways
