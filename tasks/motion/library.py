"""Library of motions: the frames of several clips of a robot as tensors on a device, at the control rate."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from physics import host
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip
from tasks.motion.states import root_joint, states
from tasks.shared import quat

OF_ALL = ("qpos", "qvel")  # fields of Frames that are not of bodies


class Frames(NamedTuple):
  """Frames of a motion, n of each; bodies are those of the library."""

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

    `lag` [s]: frames of bodies are those of so much earlier, as in a simulation, where derived quantities are
    one time step old. `bodies` are the ids of those to keep; None: all. Raises SettingError if a clip is
    shorter than two control steps.
    """
    self.dt = dt
    sampled = [clip.resampled(1.0 / dt) for clip in clips]
    short = next((clip for clip in sampled if len(clip) < 3), None)
    if short is not None:
      raise SettingError(f"{short.name}: it lasts {short.seconds:.2g} s, less than two control steps")
    lengths = [len(clip) for clip in sampled]
    parts = [_frames(model, clip, lag) for clip in sampled]
    joined = Frames(*(torch.cat(each) for each in zip(*parts, strict=True)))
    chosen = slice(None) if bodies is None else list(bodies)
    kept = [part if name in OF_ALL else part[:, chosen] for name, part in joined._asdict().items()]
    weights = torch.tensor([clip.weight for clip in clips], dtype=torch.float32, device=device)
    self.names = tuple(clip.name for clip in clips)
    # The rows come last in memory, so that what is taken from them is stored as a simulation's state is.
    self._tables = {
      name: part.to(device, torch.float32).movedim(0, -1).contiguous()
      for name, part in zip(Frames._fields, kept, strict=True)
    }
    self.lengths = torch.tensor(lengths, device=device)  # frames of each clip [clips] int64
    self.first = self.lengths.cumsum(0) - self.lengths  # row of the first frame of each clip [clips] int64
    self.weights = weights / weights.sum()  # with which clips are drawn [clips]
    self.clip_of = torch.repeat_interleave(torch.arange(len(clips), device=device), self.lengths)  # [rows]

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

  def draw(self, uniform: Tensor, margin: int = 0) -> tuple[Tensor, Tensor]:
    """Return clips and frames [n] int64 for random numbers [n, 2] in [0, 1): clips by weight, frames alike.

    At least `margin` frames follow a frame; of a clip that has not so many, the first frame is drawn.
    """
    ends = self.weights.cumsum(0)
    clip = torch.searchsorted(ends, uniform[:, 0].contiguous(), right=True).clamp(max=len(ends) - 1)
    frame = (uniform[:, 1] * (self.lengths[clip] - margin).clamp(min=1)).long()
    return clip, frame


def _frames(model: Any, clip: Clip, lag: float) -> Frames:
  """Return the frames of a clip, those of bodies `lag` [s] earlier."""
  qpos, qvel = states(clip, model)
  root = root_joint(model)
  place, dof = int(model.jnt_qposadr[root]), int(model.jnt_dofadr[root])
  earlier = states(clip, model)[0]
  earlier[:, place : place + 3] -= lag * qvel[:, dof : dof + 3]
  turn = quat.from_rotation_vector(-lag * qvel[:, dof + 3 : dof + 6])
  earlier[:, place + 3 : place + 7] = quat.multiply(earlier[:, place + 3 : place + 7], turn)
  ids = [model.joint_id(name) for name in clip.joints]
  earlier[:, model.jnt_qposadr[ids]] -= lag * qvel[:, model.jnt_dofadr[ids]]
  given = {"qpos": earlier.numpy(), "qvel": qvel.numpy()}
  found = host.evaluate(model, given, ["xpos", "xquat", "cvel", "subtree_com"])
  xpos, xquat, cvel, centre = (torch.from_numpy(values) for values in found.values())
  linear, angular = body_velocities(model, xpos, cvel, centre)
  return Frames(qpos, qvel, xpos, xquat, linear, angular)


def body_velocities(model: Any, xpos: Tensor, cvel: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
  """Return linear and angular velocities [n, nbody, 3] of the bodies' frames, in world axes.

  They follow from MuJoCo's `xpos` [n, nbody, 3], `cvel` [n, nbody, 6], about the centre of mass of the tree,
  and `subtree_com` [n, nbody, 3].
  """
  angular = cvel[..., :3]
  arm = xpos - centre[:, list(model.body_rootid)]
  return cvel[..., 3:] + torch.linalg.cross(angular, arm), angular
