"""Checks of a clip against its robot: units, joint order, limits, jumps, and feet at the ground."""

from typing import Any

import numpy as np

from physics import host
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip, Floats
from tasks.motion.rotation import difference
from tasks.motion.states import states

TURNS = 7.0  # beyond this, a joint angle is taken for degrees [rad]
UNITS = {
  "millimetres": (0.001, 300.0),
  "centimetres": (0.01, 20.0),
}  # factor, and root height over that at home
BEYOND = 0.2  # largest excess of a joint's range [rad, m]
FASTEST_ROOT, FASTEST_JOINT = 20.0, 60.0  # speeds beyond which a motion jumps [m/s], [rad/s]
FASTEST_TURN = 40.0  # of the root [rad/s]
SUNK, AFLOAT = 0.06, 0.15  # largest depth of the lowest frame, least height at which none touches [m]


def check(clip: Clip, model: Any, height: float) -> None:
  """Raise SettingError in one line if a robot cannot do a clip, which names clip, frame, joint and fix.

  `model` is the robot's, `height` that of its root body at home [m].
  """
  _check_units(clip, height)
  _check_jumps(clip)
  _check_limits(clip, model)
  _check_ground(clip, model, height)


def _check_units(clip: Clip, height: float) -> None:
  worst, frame, joint = _largest(np.abs(clip.joint_pos))
  if worst > TURNS:
    raise SettingError(
      f"{clip.name}, frame {frame}: '{clip.joints[joint]}' is at {worst:.4g} rad: if these are degrees, "
      f"convert them: gpurobot motion <file> degrees=true out=<new>.npz"
    )
  middle = float(np.median(clip.root_pos[:, 2]))
  for unit, (factor, most) in UNITS.items():
    if middle > most * height:
      raise SettingError(
        f"{clip.name}: its root is at a height of {middle:.4g} m, at home it is {height:.2g} m: if these are "
        f"{unit}, convert them: gpurobot motion <file> scale={factor:g} out=<new>.npz"
      )


def _check_jumps(clip: Clip) -> None:
  root = np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=1, keepdims=True) * clip.fps
  speed, frame, _ = _first_beyond(root, FASTEST_ROOT)
  if speed > FASTEST_ROOT:
    raise SettingError(
      f"{clip.name}: between frames {frame} and {frame + 1} the root moves at {speed:.3g} m/s: cut the clip "
      "there, or correct its frames per second"
    )
  spins = difference(clip.root_quat[:-1], clip.root_quat[1:])
  speed, frame, _ = _first_beyond(np.linalg.norm(spins, axis=1, keepdims=True) * clip.fps, FASTEST_TURN)
  if speed > FASTEST_TURN:
    raise SettingError(
      f"{clip.name}: between frames {frame} and {frame + 1} the root turns at {speed:.3g} rad/s: cut the "
      "clip there, or correct the order of its quaternions or its frames per second"
    )
  turns = np.abs(np.diff(clip.joint_pos, axis=0)) * clip.fps
  speed, frame, joint = _first_beyond(turns, FASTEST_JOINT)
  if speed > FASTEST_JOINT:
    raise SettingError(
      f"{clip.name}: between frames {frame} and {frame + 1} '{clip.joints[joint]}' turns at {speed:.3g} "
      "rad/s: cut the clip there, or correct its frames per second"
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


def _check_ground(clip: Clip, model: Any, height: float) -> None:
  lowest = clearance(clip, model)
  frame = int(lowest.argmin())
  depth = float(lowest[frame])
  if -SUNK <= depth <= AFLOAT:
    return
  where = "under the ground" if depth < 0 else "above the ground, and never lower"
  if depth < -height / 2:
    where += ", where z is up"
  raise SettingError(
    f"{clip.name}, frame {frame}: its lowest point is {abs(depth):.3g} m {where}: move it by "
    f"gpurobot motion <file> raise_by={-depth:.3g} out=<new>.npz"
  )


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
