"""Library of motions: the frames of several clips of a robot as tensors on a device, at the control rate."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from physics import host
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip, Floats, states
from tasks.motion.rotation import exponential, multiply
from tasks.shared import quat


class Frames(NamedTuple):
  """Frames of a motion, n of each, with the library's bodies."""

  qpos: Tensor  # [n, nq]
  qvel: Tensor  # [n, nv]
  xpos: Tensor  # [n, bodies, 3] [m]
  xquat: Tensor  # [n, bodies, 4]
  linear: Tensor  # [n, bodies, 3] velocity of the bodies' frames, in world axes [m/s]
  angular: Tensor  # [n, bodies, 3] in world axes [rad/s]


class Library:
  """Clips of one robot. A frame is found by its row: `row(clip, frame)`, tensors of any one shape."""

  def __init__(
    self,
    model: Any,
    clips: Sequence[Clip],
    dt: float,
    device: torch.device | str = "cpu",
    lag: float = 0.0,
    bodies: Sequence[int] | None = None,
  ) -> None:
    """Resample clips to control steps of `dt` [s], and evaluate them with MuJoCo C.

    `lag` [s]: frames of bodies are so much earlier, as in a simulation, where derived quantities are
    one time step old. `bodies` are the ids of those to keep; None: all. Raises SettingError if a clip is
    shorter than two control steps.
    """
    self.dt = dt
    sampled = [clip.resampled(1.0 / dt) for clip in clips]
    short = next((clip for clip in sampled if len(clip) < 3), None)
    if short is not None:
      raise SettingError(f"{short.name}: it lasts {short.seconds:.2g} s, less than two control steps")
    fields = [_frames(model, clip, lag, bodies) for clip in sampled]
    # The rows come last in memory, so that frames taken from them are stored as a simulation's state is.
    self._tables = {
      name: torch.tensor(np.concatenate(parts), dtype=torch.float32, device=device)
      .movedim(0, -1)
      .contiguous()
      for name, parts in zip(Frames._fields, zip(*fields, strict=True), strict=True)
    }
    self.names = tuple(clip.name for clip in clips)
    self.counts = [len(clip) for clip in sampled]  # frames of each clip, on the host
    self.lengths = torch.tensor(self.counts, device=device)  # the same [clips] int64
    self.first = self.lengths.cumsum(0) - self.lengths  # row of the first frame of each clip [clips] int64
    shares = np.array([clip.weight for clip in clips])
    self.shares = shares / shares.sum()  # with which clips are drawn, on the host
    self.weights = torch.tensor(self.shares, dtype=torch.float32, device=device)  # the same [clips]
    self.clip_of = torch.tensor(np.repeat(np.arange(len(clips)), self.counts), device=device)  # of each row

  def __len__(self) -> int:
    """Return the number of rows, over all clips."""
    return len(self.clip_of)

  def row(self, clip: Tensor, frame: Tensor) -> Tensor:
    """Return the rows of frames of clips, both int64 of one shape; before its ends a clip stands still."""
    return self.first[clip] + torch.minimum(frame.clamp(min=0), self.lengths[clip] - 1)

  def at(self, row: Tensor) -> Frames:
    """Return the frames at rows [n] int64."""
    return Frames(*(self.take(name, row) for name in Frames._fields))

  def take(self, name: str, row: Tensor) -> Tensor:
    """Return one field of the frames at rows [n] int64, [n, ...]."""
    return self._tables[name].index_select(-1, row).movedim(-1, 0)

  def take_first(self, name: str, row: Tensor) -> Tensor:
    """Return a field of the first body alone in the frames at rows [n] int64, [n, ...]."""
    return self._tables[name][0].index_select(-1, row).movedim(-1, 0)

  def draw(self, uniform: Tensor, margin: int = 0) -> tuple[Tensor, Tensor]:
    """Return clips and frames [n] int64 for random numbers [n, 2] in [0, 1): clips by weight, frames alike.

    At least `margin` frames follow a frame; of a clip that has not so many, the first frame is drawn.
    """
    ends = self.weights.cumsum(0)
    clip = torch.searchsorted(ends, uniform[:, 0].contiguous(), right=True).clamp(max=len(ends) - 1)
    frame = (uniform[:, 1] * (self.lengths[clip] - margin).clamp(min=1)).long()
    return clip, frame


def _frames(model: Any, clip: Clip, lag: float, bodies: Sequence[int] | None) -> tuple[Floats, ...]:
  """Return the fields of Frames of a clip, with bodies `lag` [s] earlier."""
  qpos, qvel = states(clip, model)
  linear, angular, joint_vel = clip.velocities()
  earlier = dataclasses.replace(
    clip,
    root_pos=clip.root_pos - lag * linear,
    root_quat=multiply(clip.root_quat, exponential(-lag * angular)),
    joint_pos=clip.joint_pos - lag * joint_vel,
  )
  given = {"qpos": states(earlier, model)[0], "qvel": qvel}
  found = host.evaluate(model, given, ["xpos", "xquat", "cvel", "subtree_com"])
  spin = found["cvel"][..., :3]
  arm = found["xpos"] - found["subtree_com"][:, model.body_rootid]
  of_bodies = (found["xpos"], found["xquat"], found["cvel"][..., 3:] + np.cross(spin, arm), spin)
  chosen = list(range(model.nbody) if bodies is None else bodies)
  return (qpos, qvel, *(part[:, chosen] for part in of_bodies))


def body_velocities(xpos: Tensor, cvel: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
  """Return linear and angular velocities [n, bodies, 3] of the frames of a robot's bodies, in world axes.

  They follow from MuJoCo's `xpos` [n, bodies, 3] and `cvel` [n, bodies, 6], which is about the robot's centre
  of mass [n, 3], that of `subtree_com` of its root.
  """
  angular = cvel[..., :3]
  return cvel[..., 3:] + quat.cross(angular, xpos - centre.unsqueeze(1)), angular
