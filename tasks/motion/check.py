"""Checks of a clip against its robot: units, joint order, limits, jumps, and feet at the ground."""

from typing import Any

import numpy as np

from physics import host
from physics.robot import LeggedRobot
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip, Floats, states
from tasks.motion.rotation import difference, rotate

TURNS = 7.0  # beyond this, a joint angle is taken for degrees [rad]
UNITS = {
  "millimetres": (0.001, 300.0),
  "centimetres": (0.01, 20.0),
}  # factor, and root height over that at home
BEYOND = 0.2  # largest excess of a joint's range [rad, m]
FASTEST_ROOT, FASTEST_JOINT = 20.0, 60.0  # speeds beyond which a motion jumps [m/s], [rad/s]
FASTEST_TURN = 40.0  # of the root [rad/s]
# By the length of a leg: largest depth of the lowest frame, least height at which none touches, and what is
# doubtful: height of three of four frames, rise from the first to the last.
SUNK, AFLOAT, FLOATS, DRIFTS = 0.075, 0.18, 0.05, 0.1
QUARTER = 0.25  # share of the frames that are expected to touch the ground
SMOOTH = 0.1  # half a window within which sunk frames raise others [s]
UPRIGHT, FALLEN = 90.0, 120.0  # tilts that crawling does not reach, and goes not beyond [degrees]
BACKWARDS = 0.7  # share of the path
SHIFTS = {"xyzw": 1, "wxyz": -1}  # places by which columns move if they are of this order and not the other
MEND = "gpurobot motion <file> {} out=<new>.npz"


def check(clip: Clip, model: Any, robot: LeggedRobot) -> dict[str, bool]:
  """Return lines about what a clip does, with what mends it, and whether that is doubtful.

  Raises SettingError in one line, with clip, frame, joint and fix, if its robot, of a model, cannot do it.
  """
  _check_units(clip, robot)
  _check_jumps(clip)
  _check_limits(clip, model)
  lowest = clearance(clip, model)
  _check_ground(clip, model, robot, lowest)
  leg, rise, low = robot.leg_length, _rise(lowest), round(float(np.quantile(lowest, QUARTER)), 3) + 0.0
  path = float(np.linalg.norm(np.diff(clip.root_pos[:, :2], axis=0), axis=1).sum())
  ahead, left, tilt = _course(clip)
  backwards, fallen = ahead < -BACKWARDS * path and path > leg, tilt > FALLEN
  floats, drifts = abs(low) > FLOATS * leg, abs(rise) > DRIFTS * leg
  order = height = ""
  if backwards or fallen or floats or drifts:
    order = _other_order(clip, model, leg, lowest, odd=backwards or fallen)
    height = order or _other_height(lowest, low, leg)
  way = f"as it faces, {ahead:.2f} m ahead and {left:.2f} m to the left, on a path of {path:.2f} m"
  return {
    f"three of four frames are {low:.3f} m above the ground or higher, {low / leg:.0%} of a leg"
    + height * floats: floats,
    f"it rises by {rise:.2f} m in {clip.seconds:.1f} s" + height * drifts: drifts,
    way + order * backwards: backwards,
    f"tilted by {tilt:.0f} degrees in the middle" + order * fallen: fallen,
  }


def _other_order(clip: Clip, model: Any, leg: float, lowest: Floats, *, odd: bool) -> str:
  """Return how to reorder quaternions, if the robot stands upright on the ground with the other order.

  A clip that is not `odd` otherwise has to keep twice as level with it.
  """
  for order, shift in SHIFTS.items():
    other = clip.reordered(shift)
    low = clearance(other, model)
    stands = abs(np.quantile(low, QUARTER)) < FLOATS * leg and low.min() > -SUNK * leg
    level = np.std(low - ground(low)) < 0.5 * np.std(lowest - ground(lowest))
    if stands and _course(other)[2] < UPRIGHT and (odd or level):
      return f": if its quaternions are {order}, reorder them: {MEND.format(f'reorder={order}')}"
  return ""


def _other_height(lowest: Floats, height: float, leg: float) -> str:
  drifts = abs(_rise(lowest)) > DRIFTS * leg
  return f": move it by {MEND.format('level=true' if drifts else f'raise_by={-height:.3g}')}"


def _rise(lowest: Floats) -> float:
  line = ground(lowest)
  return float(line[-1] - line[0])


def ground(lowest: Floats) -> Floats:
  """Return the line [T] [m] through the lowest points of a clip's first third and its last."""
  third = -(-len(lowest) // 3)
  first, last = (np.quantile(part, 0.1) for part in (lowest[:third], lowest[-third:]))
  line = (last - first) * np.arange(len(lowest)) / (len(lowest) - third)
  return line + np.quantile(lowest - line, QUARTER)


def sunk(lowest: Floats, fps: float) -> Floats:
  """Return smooth heights [T] [m] that raise every frame's lowest point [T] [m] to the ground or above."""
  near = max(1, round(SMOOTH * fps))
  depth = np.pad(np.maximum(-lowest, 0.0), 2 * near, mode="edge")
  largest = np.lib.stride_tricks.sliding_window_view(depth, 2 * near + 1).max(1)
  return np.lib.stride_tricks.sliding_window_view(largest, 2 * near + 1).mean(1)


def _check_units(clip: Clip, robot: LeggedRobot) -> None:
  worst, frame, joint = _largest(np.abs(clip.joint_pos))
  if worst > TURNS:
    raise SettingError(
      f"{clip.name}, frame {frame}: '{clip.joints[joint]}' is at {worst:.4g} rad: if these are degrees, "
      f"convert them: {MEND.format('degrees=true')}"
    )
  middle = float(np.median(clip.root_pos[:, 2]))
  for unit, (factor, most) in UNITS.items():
    if middle > most * robot.stature:
      raise SettingError(
        f"{clip.name}: its root is at a height of {middle:.4g} m, at home it is {robot.height:.2g} m: if "
        f"these are {unit}, convert them: {MEND.format(f'scale={factor:g}')}"
      )


def _check_jumps(clip: Clip) -> None:
  turn = difference(clip.root_quat[:-1], clip.root_quat[1:])
  move, joints = np.diff(clip.root_pos, axis=0), np.abs(np.diff(clip.joint_pos, axis=0))
  root, spin = (np.linalg.norm(part, axis=1, keepdims=True) for part in (move, turn))
  for moves, most, names, unit, order in (
    (root, FASTEST_ROOT, ["the root moves"], "m/s", ""),
    (spin, FASTEST_TURN, ["the root turns"], "rad/s", "the order of its quaternions or "),
    (joints, FASTEST_JOINT, [f"'{name}' turns" for name in clip.joints], "rad/s", ""),
  ):
    speed, frame, column = _first_beyond(moves * clip.fps, most)
    if speed > most:
      raise SettingError(
        f"{clip.name}: between frames {frame} and {frame + 1} {names[column]} at {speed:.3g} {unit}: cut the "
        f"clip there, or correct {order}its frames per second"
      )


def _check_limits(clip: Clip, model: Any) -> None:
  ids = [model.joint_id(name) for name in clip.joints]
  low, high = model.jnt_range[ids].T
  beyond = np.maximum(low - clip.joint_pos, clip.joint_pos - high) * model.jnt_limited[ids]
  worst, frame, joint = _largest(beyond)
  if worst > BEYOND:
    angle = clip.joint_pos[frame, joint]
    raise SettingError(
      f"{clip.name}, frame {frame}: '{clip.joints[joint]}' is at {angle:.3g} and its range ends at "
      f"{(low if angle < low[joint] else high)[joint]:.3g}: correct the order of the joints by "
      "env.motion_joints, or the clip"
    )


def _check_ground(clip: Clip, model: Any, robot: LeggedRobot, lowest: Floats) -> None:
  frame, leg = int(lowest.argmin()), robot.leg_length
  depth = float(lowest[frame])
  if -SUNK * leg <= depth <= AFLOAT * leg:
    return
  where = "under the ground" if depth < 0 else "above the ground, and never lower"
  if depth < -robot.stature / 2:
    where += ", where z is up"
  order = _other_order(clip, model, leg, lowest, odd=_course(clip)[2] > FALLEN)
  sinks = depth < 0 and np.quantile(lowest, 1 - QUARTER) > -SUNK * leg
  mend = order or (f": raise such frames by {MEND.format('raise_sunk=true')}" if sinks else "")
  mend = mend or _other_height(lowest, depth, leg)
  raise SettingError(f"{clip.name}, frame {frame}: its lowest point is {abs(depth):.3g} m {where}{mend}")


def _course(clip: Clip) -> tuple[float, float, float]:
  """Return how far a root goes along its x and its y axis, on the floor [m], and its median tilt [degrees].

  Backwards, or tilted, is what a file says whose quaternions are read in the wrong order.
  """
  ahead, up = (
    rotate(clip.root_quat, np.broadcast_to(axis, clip.root_pos.shape)) for axis in np.eye(3)[[0, 2]]
  )
  flat = ahead[:-1, :2] / np.maximum(np.linalg.norm(ahead[:-1, :2], axis=1, keepdims=True), 1e-9)
  x, y = np.diff(clip.root_pos[:, :2], axis=0).T
  tilt = np.degrees(np.arccos(np.clip(np.median(up[:, 2]), -1.0, 1.0)))
  ways = flat[:, 0] @ x + flat[:, 1] @ y, flat[:, 0] @ y - flat[:, 1] @ x
  return round(float(ways[0]), 2) + 0.0, round(float(ways[1]), 2) + 0.0, float(tilt)  # not -0.00


def clearance(clip: Clip, model: Any) -> Floats:
  """Return the height of the robot's lowest point above the floor in each frame [T] [m]."""
  return host.lowest(model, states(clip, model)[0])


def _first_beyond(values: Floats, limit: float) -> tuple[float, int, int]:
  """Return the first of values [T, n] beyond a limit, or the first of all, its frame and its column.

  A frame that is out of place makes two equal jumps, and rounding says which of them is larger.
  """
  frame, column = divmod(int((values > limit).argmax()), values.shape[1])
  return float(values[frame, column]), frame, column


def _largest(values: Floats) -> tuple[float, int, int]:
  """Return the largest of values [T, n], its frame and its column."""
  frame, column = divmod(int(values.argmax()), values.shape[1])
  return float(values[frame, column]), frame, column
