"""Readers of motion files: CSV, NPZ and PKL as retargeting tools write them.

A CSV has a row for each frame: the root's position [m] and quaternion, then joint positions [rad], as the
retargeted LAFAN1 of Unitree has. A header names the columns. An NPZ or PKL has the keys of one of `LAYOUTS`.
Most files lack some metadata, such as the order of their quaternions: the user has to state it, it is never
guessed.
"""

import csv
import dataclasses
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import SettingError
from tasks.core.names import hint
from tasks.motion.clip import Clip, Floats
from tasks.motion.pickled import read_arrays

Order = Literal["wxyz", "xyzw"]
ROOT = 7  # numbers of a root pose: position and quaternion
MOST_BYTES = 2**31  # of the arrays of an NPZ, which may be packed
SLOWEST, FASTEST = 0.1, 10_000  # frames per second
FAR = 1e6  # [m, rad, cm, degrees] beyond which no motion goes
# Largest difference of a quaternion's norm from 1. Tools that interpolate rotations linearly write 0.95.
UNIT = 0.1


@dataclass(frozen=True)
class Reading:
  """The user's and the robot's description of a file; the file's own metadata have priority."""

  robot_joints: tuple[str, ...]  # in the order of the robot's actuators
  quaternion: Order | None = None
  fps: float | None = None
  joints: tuple[str, ...] = ()  # names of the file's joints in order; empty: the robot's
  home: tuple[float, ...] = ()  # of the robot's joints [rad, m]: a file may lack some


@dataclass(frozen=True)
class Layout:
  """Keys of the arrays that a tool writes; `order` is None if quaternions have either order."""

  tool: str
  position: str
  turn: str
  joints: str
  order: Order | None = None
  mark: str | None = None  # a key that distinguishes this tool from others with the same keys

  @property
  def keys(self) -> set[str]:
    """Keys that a file must have."""
    return {self.position, self.turn, self.joints} | ({self.mark} if self.mark else set())


LAYOUTS = (
  Layout("gpurobot", "root_pos", "root_quat", "joint_pos", "wxyz"),
  Layout("csv_to_npz of BeyondMimic", "body_pos_w", "body_quat_w", "joint_pos", "wxyz"),
  Layout("GMR", "root_pos", "root_rot", "dof_pos", "xyzw", mark="link_body_list"),
  Layout("tools for AMASS", "root_pos", "root_rot", "dof_pos"),
  Layout("tools for AMASS", "root_pos", "root_rot", "dof"),
  Layout("tools for AMASS", "root_trans_offset", "root_rot", "dof_pos"),
  Layout("tools for AMASS", "root_trans_offset", "root_rot", "dof"),
)
ENDINGS = ".csv, .npz, .pkl or .bvh"
RATES, NAMES = ("fps", "mocap_framerate", "frequency"), ("joint_names", "joints", "dof_names")
COUNTERS = ("time", "t", "timestamp", "frame", "index", "")  # columns before the root's, by their headings


def read_file(path: Path, reading: Reading) -> Clip:
  """Return the clip of a CSV, NPZ or PKL file; raise SettingError in one line that names file and fix."""
  readers = {".csv": _read_csv, ".npz": _read_npz, ".pkl": _read_pkl}
  if path.suffix.lower() not in readers:
    raise SettingError(f"{path}: a motion is a {ENDINGS} file")
  if not path.is_file():
    raise SettingError(f"there is no motion file '{path.name}' in {path.absolute().parent}")
  return readers[path.suffix.lower()](path, reading)


def write_npz(path: Path, clip: Clip) -> None:
  """Write a clip as an NPZ with all metadata."""
  numbers = {name: getattr(clip, name) for name in ("root_pos", "root_quat", "joint_pos")}
  np.savez_compressed(path, fps=clip.fps, joint_names=np.array(clip.joints), **numbers)


def write_clips(folder: Path, clips: Sequence[Clip], fps: float) -> list[str]:
  """Write clips at a rate into a folder, an NPZ each; return the names of the files, in the same order."""
  names = [
    f"motion_{index}_{re.sub(r'[^A-Za-z0-9_-]+', '_', clip.name)}.npz" for index, clip in enumerate(clips)
  ]
  for name, clip in zip(names, clips, strict=True):
    write_npz(folder / name, clip.resampled(fps))
  return names


def _read_csv(path: Path, reading: Reading) -> Clip:
  rows = [(number, row) for number, row in enumerate(_rows(path), 1) if row and not row[0].startswith("#")]
  if not rows:
    raise SettingError(f"{path}: the file has no frames")
  header = None if _is_number(rows[0][1][0]) else [word.strip() for word in rows.pop(0)[1]]
  _check_columns(path, header or rows[0][1], named=header is not None)
  width = len(header or rows[0][1])
  for number, row in rows:
    bad = next((word for word in row if not _is_number(word)), None)
    if len(row) != width or bad is not None:
      found = f"{len(row)} columns and not {width}" if bad is None else f"'{bad}', which is no number"
      raise SettingError(f"{path}, line {number}: it has {found}: write one number for each column")
  table = np.array([[float(word) for word in row] for _, row in rows]).reshape(len(rows), width)
  order = _order_of(header) if header else None
  names = tuple(header[ROOT:]) if header else ()
  parts = {"position": table[:, :3], "turn": table[:, 3:ROOT], "joints": table[:, ROOT:]}
  return _clip(path, parts, reading, _Metadata(order, None, names))


def _check_columns(path: Path, first: Sequence[str], named: bool) -> None:
  """Raise SettingError if the first row has another separator than commas, or a column of times."""
  if len(first) == 1:
    raise SettingError(f"{path} has one column, of '{first[0][:30]}': write commas between the numbers")
  if named and first[0].lower() in COUNTERS:
    raise SettingError(f"{path}: its first column is '{first[0]}': cut it, the root's place is the first")


def _rows(path: Path) -> list[list[str]]:
  try:
    with path.open(newline="", encoding="utf-8-sig") as file:
      return list(csv.reader(file))
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    raise SettingError(f"{path} cannot be read as CSV: {error}") from error


def _order_of(header: Sequence[str]) -> Order | None:
  """Return the order of the quaternion by the last letters of its columns: qx, root_w, ..."""
  letters = "".join(word[-1:].lower() for word in header[3:ROOT])
  return letters if letters in ("wxyz", "xyzw") else None  # type: ignore[return-value]


def _read_npz(path: Path, reading: Reading) -> Clip:
  arrays, name = dict[str, NDArray[Any]](), ""
  try:
    with np.load(path, allow_pickle=False) as archive:
      size = sum(part.file_size for part in archive.zip.infolist())
      if size > MOST_BYTES:
        raise SettingError(f"{path}: its arrays are {size:,} bytes: at most {MOST_BYTES:,}")
      for name in archive.files:
        arrays[name] = archive[name]
  except SettingError:
    raise
  except Exception as error:  # damaged archives raise exceptions of any kind
    unread = f", and '{name}' is none" if name else ""
    raise SettingError(f"{path} cannot be read: it is no NPZ file of plain arrays{unread}") from error
  return _named(path, arrays, reading)


def _read_pkl(path: Path, reading: Reading) -> Clip:
  return _named(path, read_arrays(path), reading)


def _named(path: Path, arrays: Mapping[str, NDArray[Any]], reading: Reading) -> Clip:
  """Return the clip of a file's arrays by name."""
  layout = next((each for each in LAYOUTS if each.keys <= {*arrays}), None)
  if layout is None:
    known = " or ".join(dict.fromkeys(f"{each.position}, {each.turn}, {each.joints}" for each in LAYOUTS))
    raise SettingError(f"{path} has the keys {', '.join(arrays) or 'of none'}: a motion has {known}")
  rate = next((_rate_of(path, key, arrays[key]) for key in RATES if key in arrays), None)
  names = next((tuple(map(_word_of, np.ravel(arrays[key]))) for key in NAMES if key in arrays), ())
  parts = {part: _root_of(arrays[getattr(layout, part)], part) for part in ("position", "turn", "joints")}
  return _clip(path, parts, reading, _Metadata(layout.order, rate, names))


def _rate_of(path: Path, key: str, values: NDArray[Any]) -> float:
  """Return the frames per second in an array: its only or first number."""
  if values.size == 0 or values.dtype.kind not in "fiu":
    raise SettingError(f"{path}: {key} is {np.ravel(values).tolist()}: write a number of frames per second")
  return float(np.ravel(values)[0])


def _word_of(name: Any) -> str:
  return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _root_of(values: NDArray[Any], part: str) -> NDArray[Any]:
  """Return the columns of a part; from poses of all bodies [T, bodies, n] the root's, which is the first."""
  if part == "joints":
    return values.reshape(len(values), math.prod(values.shape[1:])) if values.ndim else values[None, None]
  return values[:, 0] if values.ndim == 3 and values.size else np.atleast_1d(values)


@dataclass(frozen=True)
class _Metadata:
  """Metadata of a file; None or () where it has none."""

  order: Order | None
  fps: float | None
  joints: tuple[str, ...]


def _clip(path: Path, parts: Mapping[str, NDArray[Any]], reading: Reading, metadata: _Metadata) -> Clip:
  """Return the clip of a file's numbers, with the robot's joints in its order."""
  check_consistent(path, "quaternions", "motion_quaternion", metadata.order, reading.quaternion)
  check_consistent(path, "frames per second", "motion_fps", metadata.fps, reading.fps)
  order, fps = metadata.order or reading.quaternion, reading.fps if metadata.fps is None else metadata.fps
  if order is None or fps is None:
    missing = {
      "the order of its quaternions": order is None and "env.motion_quaternion=xyzw or wxyz",
      "its frames per second": fps is None and "env.motion_fps=30, or what it has",
    }
    unknown = {what: fix for what, fix in missing.items() if fix}
    raise SettingError(f"{path} does not say {' and '.join(unknown)}: add {' and '.join(unknown.values())}")
  check_rate(path, fps)
  _check_shapes(path, parts)
  joints = _joints(path, parts["joints"].shape[1], reading, metadata)
  turn = _unit(path, parts["turn"].astype(np.float64))
  root = turn if order == "wxyz" else np.roll(turn, 1, axis=1)
  clip = Clip(
    name=path.stem,
    fps=fps,
    root_pos=parts["position"].astype(np.float64),
    root_quat=root,
    joint_pos=parts["joints"].astype(np.float64),
    joints=joints,
  )
  return _completed(path, clip, reading).ordered(reading.robot_joints)


def _completed(path: Path, clip: Clip, reading: Reading) -> Clip:
  """Return a clip with the robot's joints that it lacks, at home, and warn of them."""
  lacking = {
    name: angle
    for name, angle in zip(reading.robot_joints, reading.home, strict=False)
    if name not in clip.joints
  }
  if lacking:
    warnings.warn(f"{path} lacks {', '.join(lacking)}: they stay at home", stacklevel=2)
  still = np.tile([*lacking.values()], (len(clip), 1))
  moved = np.concatenate([clip.joint_pos, still], 1)
  return dataclasses.replace(clip, joint_pos=moved, joints=(*clip.joints, *lacking))


def check_rate(path: Path, fps: float) -> None:
  """Raise SettingError if the frames per second are out of range."""
  if not SLOWEST <= fps <= FASTEST:
    raise SettingError(f"{path}: {fps:g} frames per second: write a number from {SLOWEST} to {FASTEST:,}")


def check_consistent(path: Path, what: str, setting: str, found: Any, given: Any) -> None:
  """Raise SettingError if a setting and the metadata of a file differ; None: it has none."""
  if found is not None and given is not None and found != given:
    raise SettingError(
      f"{path} says that its {what} are {found}: leave env.{setting}={given} out; if another file needs it, "
      f"convert that: gpurobot motion <file> {setting}={given} out=<new>.npz"
    )


def _check_shapes(path: Path, parts: Mapping[str, NDArray[Any]]) -> None:
  """Raise SettingError unless all parts have equally many frames, two or more, and finite numbers."""
  frames = {part: len(values) for part, values in parts.items()}
  if len({*frames.values()}) > 1 or parts["position"].shape[1:] != (3,) or parts["turn"].shape[1:] != (4,):
    shapes = ", ".join(f"{part} {list(values.shape)}" for part, values in parts.items())
    raise SettingError(f"{path}: shapes are {shapes}: write [frames, 3], [frames, 4] and [frames, joints]")
  if frames["position"] < 2:
    raise SettingError(f"{path}: it has {frames['position']} frames: a motion has two or more")
  for part, values in parts.items():
    if values.dtype.kind not in "fiu":
      raise SettingError(f"{path}: {part} has values of type {values.dtype}: write numbers")
    check_values(path, values, f" of {part}")


def check_values(path: Path, values: NDArray[Any], part: str = "") -> None:
  """Raise SettingError if a number of a motion [T, n] is not finite, or larger than FAR."""
  bad = np.argwhere(~(np.abs(values.astype(np.float64)) <= FAR))
  if len(bad):
    frame, column = bad[0]
    raise SettingError(
      f"{path}, frame {frame}: column {column}{part} is {values[frame, column]}: write numbers up to {FAR:g}"
    )


def _joints(path: Path, width: int, reading: Reading, metadata: _Metadata) -> tuple[str, ...]:
  """Return the names of a file's joint columns; raise SettingError if the robot's are not among them.

  A user's names replace the names of a file that are not the robot's, and may not contradict the others.
  """
  own = {*reading.robot_joints} <= {*metadata.joints}
  names = (metadata.joints if own else ()) or reading.joints or metadata.joints or reading.robot_joints
  if own and reading.joints and reading.joints != metadata.joints:
    raise SettingError(f"{path} has the robot's names at its columns: leave env.motion_joints out")
  if len(names) != width:
    source = {reading.joints: "env.motion_joints names", metadata.joints: "it names"}.get(
      names, "the robot has"
    )
    raise SettingError(
      f"{path} has {width} joints, and {source} {len(names)}: list the file's joints in their order, as "
      "env.motion_joints=[hip,knee,...]"
    )
  missing = next((name for name in reading.robot_joints if name not in names), None)
  if missing is not None and not ({*names} <= {*reading.robot_joints} and reading.home):
    raise SettingError(
      f"{path} has no joint '{missing}' of the robot, {hint(missing, names)}: name its columns by the "
      "robot's joints in env.motion_joints, or move fewer with env.joints"
    )
  twice = next((name for name in reading.robot_joints if names.count(name) > 1), None)
  if twice is not None:
    raise SettingError(f"{path}: {names.count(twice)} of its columns are '{twice}': give each its own name")
  return tuple(names)


def _unit(path: Path, turn: Floats) -> Floats:
  """Return quaternions [T, 4] of norm 1; raise SettingError if a norm is not about 1."""
  norm = np.linalg.norm(turn, axis=1, keepdims=True)
  far = np.flatnonzero(np.abs(norm - 1.0) > UNIT)
  if len(far):
    raise SettingError(
      f"{path}, frame {far[0]}: its quaternion has the norm {norm[far[0], 0]:.3g} and not 1: columns 3 to 6 "
      "of a CSV, and the root's turn of an NPZ, are unit quaternions"
    )
  return turn / norm


def _is_number(word: str) -> bool:
  try:
    float(word)
  except ValueError:
    return False
  return True
