"""State transitions of reference motions, from which a style is learnt (AMP)."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tasks.core.errors import SettingError
from tasks.motion.clip import Clip
from tasks.motion.library import Library
from tasks.motion.walk import Walk, cycle
from tasks.shared import quat

SPEEDS, PHASES = 16, 48  # of the walks: their product is the number of transitions
FASTEST = 1.2  # of the walks [m/s]
# Standard deviations of random offsets: of the poses, of their rates, and of the change of the rates in a
# control step. The joints' and the trunk's are about those that a humanoid has that tracks such a walk.
PLACE = (0.02, 0.1, 0.15)  # [m, m/s, m/s]
TURN = (0.04, 0.4, 0.6)  # [rad, rad/s, rad/s]
JOINTS = (0.05, 0.4, 0.25)  # [rad, rad/s, rad/s]


class Transitions(NamedTuple):
  """Transitions of a free robot: n pairs of states, a control step apart, and the commands that they obey."""

  qpos: Tensor  # [n, 2, nq]
  qvel: Tensor  # [n, 2, nv]
  command: Tensor  # [n, 2] forward speed [m/s] and yaw rate [rad/s]


def joined(parts: Sequence[Transitions], weights: Sequence[float] = ()) -> Transitions:
  """Return the transitions of several motions, which come as often as their weights say; (): all alike.

  Each transition is there, the ones of a short or heavy motion several times.
  """
  weights = weights or [1.0] * len(parts)
  unit = max(len(part.qpos) / weight for part, weight in zip(parts, weights, strict=True))
  rows = [_even(len(part.qpos), round(unit * weight)) for part, weight in zip(parts, weights, strict=True)]
  return Transitions(
    *(
      torch.cat([values[row] for values, row in zip(field, rows, strict=True)])
      for field in zip(*parts, strict=True)
    )
  )


def _even(rows: int, count: int) -> Tensor:
  """Return `count` row numbers [count] int64, in which each of `rows` comes equally often, within one."""
  return torch.arange(count) * rows // count


def copied(values: Tensor, times: int) -> Tensor:
  """Return `times` copies of rows [n, ...], one after another."""
  return values.repeat(times, *[1] * (values.dim() - 1))


def write(path: Path, transitions: Transitions) -> None:
  """Write transitions as an NPZ."""
  np.savez_compressed(path, **{name: part.numpy(force=True) for name, part in transitions._asdict().items()})


def recorded(path: Path) -> bool:
  """Return whether a file is an NPZ of transitions."""
  if not zipfile.is_zipfile(path):
    return False
  with np.load(path) as file:
    return set(Transitions._fields) <= set(file.files)


def read(path: Path, model: Any) -> Transitions:
  """Return the transitions of a file that `write` wrote; raise SettingError if they are not of this robot."""
  with np.load(path) as file:
    found = Transitions(*(torch.from_numpy(file[name].astype(np.float32)) for name in Transitions._fields))
  count = len(found.qpos)
  for name, part, shape in zip(Transitions._fields, found, ((2, model.nq), (2, model.nv), (2,)), strict=True):
    if tuple(part.shape) != (count, *shape) or not count:
      raise SettingError(
        f"{path}: {name} has shape {list(part.shape)}, not {[max(count, 1), *shape]}: record this robot's"
      )
    if not part.isfinite().all():
      raise SettingError(f"{path}: {name} has numbers that are not finite")
  return found


def walks(model: Any, speeds: tuple[float, float], turn_max: float, dt: float) -> Transitions:
  """Return transitions of walks of the humanoid `model` from one speed [m/s] to another, at all phases.

  None is faster than FASTEST. A walk turns by a yaw rate of its torso, up to turn_max [rad/s] either way;
  this leaves the view from the torso as it is.
  """
  low, high = (min(speed, FASTEST) for speed in speeds)
  phase = torch.arange(PHASES, dtype=torch.float64) / PHASES
  turns = torch.linspace(-turn_max, turn_max, PHASES, dtype=torch.float64)
  order = torch.arange(PHASES) * 19 % PHASES  # each phase gets another yaw rate
  parts = list[Transitions]()
  for index in range(SPEEDS):
    speed = low + (high - low) * index / (SPEEDS - 1)
    walk, turn = Walk(model, speed, cycle(speed)), turns[order.roll(index)]
    times = [phase * walk.period + later for later in (0.0, dt)]
    qpos = torch.stack([walk.qpos(time) for time in times], 1)
    qvel = torch.stack([walk.qvel(time) for time in times], 1)
    qpos[..., 0] = 0
    qvel[..., 5] = turn.unsqueeze(1)
    parts.append(Transitions(qpos, qvel, torch.stack([torch.full_like(turn, speed), turn], 1)))
  return Transitions(*(torch.cat(part).to(torch.float32) for part in zip(*parts, strict=True)))


def of_clip(model: Any, clip: Clip, dt: float) -> Transitions:
  """Return the transitions of a clip; its mean speed ahead and its mean yaw rate are the command."""
  library = Library(model, [clip], dt)
  frames = library.at(torch.arange(len(library)))
  heading = quat.yaw(frames.qpos[:, 3:7])
  velocity = quat.turn(quat.conjugate(heading), frames.qvel[:, :3])
  turned = quat.to_rotation_vector(quat.multiply(quat.conjugate(heading[:-1]), heading[1:]))[:, 2] / dt
  command = torch.stack([velocity[:, 0].mean(), turned.mean()]).expand(len(library) - 1, 2)
  qpos, qvel = (torch.stack([part[:-1], part[1:]], 1) for part in (frames.qpos, frames.qvel))
  return Transitions(qpos, qvel, command)


def spread(transitions: Transitions, dt: float, copies: int, factor: float) -> Transitions:
  """Return copies of transitions with random offsets, `factor` times the sizes of this file.

  Formulas repeat exactly, which no robot with feet that land can do. The offsets make a band around them, in
  which poses change by their rates, as with any robot. They are the same in every process.
  """
  qpos, qvel, command = (copied(part, copies) for part in transitions)
  n, _, nv = qvel.shape
  generator = torch.Generator("cpu").manual_seed(0)
  draws = torch.randn(3, n, nv, generator=generator, device="cpu")
  sizes = torch.tensor([PLACE] * 3 + [TURN] * 3 + [JOINTS] * (nv - 6), device="cpu").T.unsqueeze(1)
  offset, rate, change = factor * draws * sizes
  offsets = torch.stack([offset, offset + dt * (rate + change / 2)], 1)
  turn = quat.multiply(qpos[..., 3:7], quat.from_rotation_vector(offsets[..., 3:6]))
  moved = torch.cat([qpos[..., :3] + offsets[..., :3], turn, qpos[..., 7:] + offsets[..., 6:]], 2)
  return Transitions(moved, qvel + torch.stack([rate, rate + change], 1), command)
