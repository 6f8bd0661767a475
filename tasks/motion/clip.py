"""Clips: motions of a floating robot at a fixed frame rate, on the host in float64."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.motion.rotation import difference, exponential, multiply

Floats = NDArray[np.float64]
FREE, SLIDE = 0, 2  # of Model.jnt_type; hinges are 3

# Mirror images of a quaternion (w, x, y, z) and of a place.
MIRROR_TURN, MIRROR_PLACE = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True)
class Clip:
  """Motion of `T` frames: poses of the root body in the world, and positions of named joints."""

  name: str
  fps: float  # frames per second
  root_pos: Floats  # [T, 3] [m]
  root_quat: Floats  # [T, 4] unit quaternions (w, x, y, z)
  joint_pos: Floats  # [T, n] [rad, m]
  joints: tuple[str, ...]  # names of the n joints
  weight: float = 1.0  # relative frequency with which the clip is drawn

  def __len__(self) -> int:
    return len(self.root_pos)

  @property
  def seconds(self) -> float:
    """The time between the first frame and the last [s]."""
    return (len(self) - 1) / self.fps

  def ordered(self, joints: Sequence[str]) -> "Clip":
    """Return the clip with these joints alone, in this order."""
    columns = [self.joints.index(name) for name in joints]
    return dataclasses.replace(self, joint_pos=self.joint_pos[:, columns], joints=tuple(joints))

  def resampled(self, fps: float) -> "Clip":
    """Return the clip at another rate: linear between two frames, spherically linear for the rotation."""
    count = int(self.seconds * fps + 1e-6) + 1
    time = np.minimum(np.arange(count) * (self.fps / fps), len(self) - 1)
    before = np.minimum(time.astype(np.int64), len(self) - 2)
    part = (time - before)[:, None]

    def between(values: Floats) -> Floats:
      return values[before] + part * (values[before + 1] - values[before])

    turn = difference(self.root_quat[before], self.root_quat[before + 1])
    return dataclasses.replace(
      self,
      fps=fps,
      root_pos=between(self.root_pos),
      root_quat=multiply(self.root_quat[before], exponential(part * turn)),
      joint_pos=between(self.joint_pos),
    )

  def part(self, begin: float, end: float | None = None) -> "Clip":
    """Return the frames from `begin` to `end` [s], both included; None: to the last."""
    last = len(self) - 1 if end is None else round(end * self.fps)
    frames = slice(round(begin * self.fps), last + 1)
    return dataclasses.replace(
      self,
      root_pos=self.root_pos[frames],
      root_quat=self.root_quat[frames],
      joint_pos=self.joint_pos[frames],
    )

  def velocities(self) -> tuple[Floats, Floats, Floats]:
    """Return the velocities of root [T, 3] [m/s], its rotation [T, 3] [rad/s] and joints [T, n] [rad/s].

    They are central differences, one-sided at the ends. As in MuJoCo's free joint, the first is in
    world axes and the second, from the exact logarithm of the rotation between two frames, in body axes.
    """
    frame = np.arange(len(self))
    before, after = np.maximum(frame - 1, 0), np.minimum(frame + 1, len(self) - 1)
    rate = (self.fps / (after - before))[:, None]
    return (
      rate * (self.root_pos[after] - self.root_pos[before]),
      rate * difference(self.root_quat[before], self.root_quat[after]),
      rate * (self.joint_pos[after] - self.joint_pos[before]),
    )

  def mirrored(self, partners: Sequence[int], signs: Sequence[int]) -> "Clip":
    """Return the mirror image in the plane of the world's x and z axes.

    The image of joint i is joint `partners[i]`, in the order of `joints`, times `signs[i]`.
    """
    return dataclasses.replace(
      self,
      name=f"{self.name} mirrored",
      root_pos=self.root_pos * MIRROR_PLACE,
      root_quat=self.root_quat * MIRROR_TURN,
      joint_pos=self.joint_pos[:, list(partners)] * np.array(signs, dtype=np.float64),
    )

  def scaled(self, length: float, angle: float = 1.0) -> "Clip":
    """Return the clip with positions times `length` and joint positions times `angle`: other units."""
    return dataclasses.replace(self, root_pos=length * self.root_pos, joint_pos=angle * self.joint_pos)

  def reordered(self, places: int) -> "Clip":
    """Return the clip with the columns of its quaternions moved round by `places`."""
    return dataclasses.replace(self, root_quat=np.roll(self.root_quat, places, axis=1))

  def lifted(self, height: Floats | float) -> "Clip":
    """Return the clip higher by `height`, a number or one for each frame [T] [m]."""
    place = self.root_pos.copy()
    place[:, 2] += height
    return dataclasses.replace(self, root_pos=place)


def states(clip: Clip, model: Any) -> tuple[Floats, Floats]:
  """Return positions [T, nq] and velocities [T, nv] of a model; joints that the clip lacks are at home."""
  root = root_joint(model)
  place, dof = int(model.jnt_qposadr[root]), int(model.jnt_dofadr[root])
  ids = [model.joint_id(name) for name in clip.joints]
  qpos, qvel = np.tile(model.qpos0, (len(clip), 1)), np.zeros((len(clip), model.nv))
  linear, angular, joint_vel = clip.velocities()
  qpos[:, place : place + 7] = np.concatenate([clip.root_pos, clip.root_quat], 1)
  qpos[:, model.jnt_qposadr[ids]] = clip.joint_pos
  qvel[:, dof : dof + 6] = np.concatenate([linear, angular], 1)
  qvel[:, model.jnt_dofadr[ids]] = joint_vel
  return qpos, qvel


def root_joint(model: Any) -> int:
  """Return the free joint of a floating robot."""
  return int((model.jnt_type == FREE).argmax())
