"""Place of a cube before an arm: where its hand, pointing down, reaches a table and the air above it."""

import itertools
from dataclasses import dataclass

import mujoco
import numpy as np

from physics.model.model import Floats
from physics.robot.description import Asked
from physics.robot.gripper import GRASP, Gripper
from physics.robot.skeleton import Skeleton
from physics.robot.source import FLOOR
from physics.robot.workspace import Survey, ranges

LEVELS = 0.0, 0.15, 0.3, 0.45, 0.6  # heights of the table above the floor that are tried, over the reach
HIGHEST = 0.26, 0.18, 0.12  # heights of the highest goal above the cube that are tried, over the reach
DISTANCES = 0.5, 0.4, 0.6, 0.7, 0.3  # of the cube from the first joint that are tried, over the reach
AHEAD, ASIDE = 0.1, 0.16  # half the size of the cube's area, over the reach
HOME = 0.7  # height of the hand at home above the cube, over the highest goal's
FEWEST = 7  # of nine poses that the hand must reach
PRECISE, DOWN, TILTED = 0.01, 0.97, 0.8  # distance over the reach; cosine of the hand's tilt, and at a goal
STARTS = 8  # samples from which the search of home begins
STEPS, DAMPING, TURN = 60, 1e-4, 0.3  # of the search: iterations; damping; weight of a radian, over the reach
PAD = 0.35, 0.1, 0.36  # half the size of a fingertip's pad, over the cube's side
PLATE, MARGIN = 0.02, 2.0  # thickness of a table [m]; its size over the area's
CUBE = 1 << 30  # bit of contype and conaffinity of what touches the cube
STICK = 10.0  # impratio: in a closed gripper a cube creeps down by 0.5 mm a second, and by 3 mm with 1
SIGNS = np.array([*itertools.product((-1, 1), repeat=2)])


@dataclass(frozen=True)
class Table:
  """Area in which a cube starts; the hand points down above its middle at home."""

  middle: Floats  # on the table's top [3] [m]
  half: Floats  # half of its size along x and y [2] [m]
  highest: float  # height of goals above the cube, the largest [m]
  hand: Floats  # position [m] and quaternion of the grasp at home [7]
  raised: bool  # whether it is above the floor

  def words(self) -> str:
    """Return the description in one line."""
    x, y, z = self.middle.tolist()
    place = f"on a table of z = {z:.2g} m" if self.raised else "on the floor"
    return f"cube {place}, about x = {x:.2g}, y = {y:.2g} m"


def put_cube(spec: mujoco.MjSpec, gripper: Gripper, table: Table) -> mujoco.MjSpec:
  """Return an arm with a cube on the floor or on a table; the hand and the fingers touch the cube."""
  spec, half = spec.copy(), gripper.side / 2
  floor, place = spec.geom(FLOOR), table.middle + np.array([0, 0, half])
  surfaces = [floor]
  if table.raised:
    middle, size = table.middle - np.array([0, 0, PLATE / 2]), [*MARGIN * table.half, PLATE / 2]
    plate = spec.worldbody.add_geom(name="table", type=mujoco.mjtGeom.mjGEOM_BOX, pos=middle, size=size)
    plate.contype, plate.conaffinity = floor.contype, floor.conaffinity
    surfaces.append(plate)
  tips = {name for name, *_ in gripper.sites[1:]}
  for name in gripper.bodies:
    solid = [geom for geom in spec.body(name).geoms if geom.contype or geom.conaffinity]
    surfaces += [geom for geom in solid if name not in tips or geom.type != mujoco.mjtGeom.mjGEOM_MESH]
  for geom in surfaces:
    geom.conaffinity |= CUBE
  _put_pads(spec, gripper)
  body = spec.worldbody.add_body(name="cube", pos=place)
  body.add_freejoint(name="cube")
  cube = body.add_geom(name="cube", type=mujoco.mjtGeom.mjGEOM_BOX, size=[half] * 3, rgba=[0.9, 0.3, 0.2, 1])
  cube.contype, cube.conaffinity, cube.friction = CUBE, 0, [1, 0.02, 0.002]
  spec.option.impratio = STICK
  spec.keys[0].qpos = [*spec.keys[0].qpos, *place, 1, 0, 0, 0]
  return spec


def _put_pads(spec: mujoco.MjSpec, gripper: Gripper) -> None:
  """Give fingertips of meshes a flat pad that touches the cube: the hull of a bent finger pushes it out."""
  for sign, (name, place, quat) in zip((1, -1), gripper.sites[1:], strict=True):
    if any(geom.type == mujoco.mjtGeom.mjGEOM_MESH for geom in spec.body(name).geoms if geom.conaffinity):
      size, outwards = gripper.side * np.array(PAD), np.zeros(3)
      mujoco.mju_rotVecQuat(outwards, np.array([0, sign * size[1], 0]), quat)
      pad = spec.body(name).add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX, pos=place + outwards, quat=quat, size=size
      )
      pad.contype, pad.conaffinity, pad.mass, pad.group = 0, CUBE, 0, 3


def find_table(
  skeleton: Skeleton, found: Survey, size: tuple[float, float], asked: Asked, *, faces: bool
) -> Table:
  """Return where a cube starts, and take the home pose above it; `size` is reach and cube side [m].

  The lowest table is taken at which the hand reaches all corners, in the direction that the arm `faces`, or
  along x. Raises ValueError if the hand mostly reaches none.
  """
  reach, side = size
  base = skeleton.data.xanchor[skeleton.joints[0]]
  floor = float(skeleton.data.geom(FLOOR).xpos[2])
  ahead = skeleton.data.site(GRASP).xpos - base
  first = round(float(np.arctan2(ahead[1], ahead[0])) / (np.pi / 2)) if faces else 0
  best: tuple[int, Table | None, Floats] = (FEWEST - 1, None, skeleton.data.qpos.copy())
  choices = itertools.product(LEVELS, HIGHEST, (0, 1, -1, 2), DISTANCES)
  for level, highest, turn, distance in choices:
    quarter = (first + turn) * np.pi / 2
    along = np.array([np.cos(quarter), np.sin(quarter)]).round()
    middle = np.array([*(base[:2] + distance * reach * along), floor + level * reach])
    table = Table(middle, reach * np.where(along != 0, AHEAD, ASIDE), reach * highest, np.zeros(7), level > 0)
    above = middle + np.array([0, 0, side / 2])
    if not _above(skeleton, found, above + np.array([0, 0, HOME * table.highest]), reach):
      continue
    home, corners = skeleton.data.qpos.copy(), np.column_stack([SIGNS * table.half, np.zeros(4)])
    low = [_point_down(skeleton, home, above + corner, reach, DOWN) for corner in corners]
    corners[:, 2] = table.highest
    high = [_point_down(skeleton, home, above + corner, reach, TILTED) for corner in corners]
    if (count := 1 + sum(low) + sum(high)) > best[0]:
      best = count, table, home
    if count == 1 + 2 * len(SIGNS):
      break
  _, chosen, home = best
  if chosen is None:
    raise ValueError(
      f"{asked.path}: its hand does not point down above a table anywhere: name another tip as env.site, or "
      "let it reach: task=reach"
    )
  skeleton.take(home)
  chosen.hand[:3] = skeleton.data.site(GRASP).xpos
  mujoco.mju_mat2Quat(chosen.hand[3:], skeleton.data.site(GRASP).xmat)
  return chosen


def _above(skeleton: Skeleton, found: Survey, place: Floats, reach: float) -> bool:
  """Take a pose with the hand down at a place [3] [m], the elbow above it; return whether there is one."""
  data = skeleton.data
  away = np.linalg.norm(found.places - place, axis=1) / reach + 0.5 * (1.0 + found.turns[:, 2, 2])
  for index in np.where(found.apart, away, np.inf).argsort()[:STARTS]:
    data.qpos[skeleton.columns] = found.angles[index]
    down = _point_down(skeleton, data.qpos, place, reach, DOWN)
    if down and (data.xanchor[skeleton.joints[2:], 2] > place[2]).all():
      return True
  return False


def _point_down(skeleton: Skeleton, start: Floats, place: Floats, reach: float, down: float) -> bool:
  """Bring the grasp from a pose [nq] to a place [3] [m] with the hand down; return whether it is there."""
  mj, data = skeleton.mj, skeleton.data
  data.qpos[:] = start
  low, high = ranges(skeleton).T
  dofs, frame = mj.jnt_dofadr[skeleton.joints], data.site(GRASP)
  jacobian = np.zeros((6, mj.nv))
  for _ in range(STEPS):
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    z = frame.xmat[2::3]
    offset = place - frame.xpos
    if np.linalg.norm(offset) < PRECISE * reach and -z[2] > down:
      return True
    mujoco.mj_jacSite(mj, data, jacobian[:3], jacobian[3:], frame.id)
    weighted = jacobian[:, dofs] * np.array([*[1 / reach] * 3, *[TURN] * 3])[:, None]
    tilt = np.cross(z, [0.0, 0.0, -1.0])
    # The turn about the vertical is free.
    weighted[5] = 0.0
    error = np.array([*offset / reach, *TURN * tilt])
    step = weighted.T @ np.linalg.solve(weighted @ weighted.T + DAMPING * np.eye(6), error)
    data.qpos[skeleton.columns] = (data.qpos[skeleton.columns] + step.clip(-0.3, 0.3)).clip(low, high)
  return False
