"""Motions with minimal weighted changes of angular momentum: all frames of a robot's path at once."""

from collections.abc import Sequence

import mujoco
import numpy as np

from physics.inverse_kinematics import DAMPING, Goal, add_goals, move
from physics.model.model import Floats, Model

STEPS = 3  # of Gauss and Newton


def steady(model: Model, qpos: Floats, goals: Sequence[Goal], weight: Floats, dt: float) -> Floats:
  """Return configurations [T, nq] near `qpos` with the least squared errors of goals and of torques.

  A torque is the change of the angular momentum about the centre of mass between two frames, over their time
  `dt` [s]. `weight` [T] multiplies its square at each frame [1/(N m)^2], except at both ends. Where
  nothing touches the robot it must be 0, as only forces from outside change the momentum.
  """
  mj, data, found = model.mj, mujoco.MjData(model.mj), qpos.copy()
  for _ in range(STEPS):
    matrices, vectors, maps = _linearised(mj, data, found, goals)
    near, far = _add_torques(mj, found, maps / dt, weight / dt**2, matrices, vectors)
    for frame, change in enumerate(_solve(matrices, near, far, vectors)):
      data.qpos[:] = found[frame]
      move(mj, data, change)
      found[frame] = data.qpos
  return found


def _linearised(
  mj: mujoco.MjModel, data: mujoco.MjData, qpos: Floats, goals: Sequence[Goal]
) -> tuple[Floats, Floats, Floats]:
  """Return normal equations of the goals [T, nv, nv] and [T, nv], and angular momenta by rates [T, 3, nv]."""
  count, nv = len(qpos), mj.nv
  matrices, vectors = np.tile(DAMPING * np.eye(nv), (count, 1, 1)), np.zeros((count, nv))
  maps = np.empty((count, 3, nv))
  for frame in range(count):
    data.qpos[:] = qpos[frame]
    add_goals(mj, data, goals, frame, matrices[frame], vectors[frame])
    mujoco.mj_angmomMat(mj, data, maps[frame], 1)
  return matrices, vectors, maps


def _add_torques(
  mj: mujoco.MjModel, qpos: Floats, maps: Floats, weight: Floats, matrices: Floats, vectors: Floats
) -> tuple[Floats, Floats]:
  """Add squared changes of momentum to normal equations; return their blocks off the diagonal, of `_solve`.

  Momenta belong to the moves between two frames: `maps` times these. How a map depends on the pose is left
  out of the derivatives, as moves are small.
  """
  moves = np.empty((len(qpos) - 1, mj.nv))
  for frame, change in enumerate(moves):
    mujoco.mj_differentiatePos(mj, change, 1.0, qpos[frame], qpos[frame + 1])
  between = (maps[1:] + maps[:-1]) / 2  # [T - 1, 3, nv]
  change = np.diff(between @ moves[..., None], axis=0)  # [T - 2, 3, 1], at the frame between two moves
  before, after = between[:-1], between[1:]
  parts = (before, -before - after, after)  # derivatives by the frame before, its own and the one after
  held = [weight[1:-1, None, None] * part.transpose(0, 2, 1) for part in parts]
  for first, (one, part) in enumerate(zip(held, parts, strict=True)):
    matrices[first : first + len(change)] += one @ part
    vectors[first : first + len(change)] -= (one @ change)[..., 0]
  near = np.zeros((len(moves), mj.nv, mj.nv))
  near[:-1] += held[0] @ parts[1]
  near[1:] += held[1] @ parts[2]
  return near, held[0] @ parts[2]


def _solve(own: Floats, near: Floats, far: Floats, right: Floats) -> Floats:
  """Return the solution [T, nv] of a symmetric system with blocks [nv, nv] to the second off the diagonal.

  `near` are the blocks of a frame and the next one [T - 1, ...], `far` of frames two apart [T - 2, ...].
  Two frames are one block of a tridiagonal system, which is eliminated downwards and substituted upwards.
  """
  count, n = right.shape
  length = count + count % 2
  own = np.concatenate([own, np.tile(np.eye(n), (length - count, 1, 1))])
  near, far, right = (
    np.concatenate([part, np.zeros((length - len(part), *part.shape[1:]))]) for part in (near, far, right)
  )
  diagonal = np.block([[own[::2], near[::2]], [near[::2].transpose(0, 2, 1), own[1::2]]])
  beside = np.block([[far[::2], np.zeros_like(far[::2])], [near[1::2], far[1::2]]])
  right = right.reshape(-1, 2 * n)
  for pair in range(1, len(right)):
    factor = np.linalg.solve(diagonal[pair - 1], beside[pair - 1]).T
    diagonal[pair] -= factor @ beside[pair - 1]
    right[pair] -= factor @ right[pair - 1]
  after = np.zeros(2 * n)
  for pair in reversed(range(len(right))):
    after = right[pair] = np.linalg.solve(diagonal[pair], right[pair] - beside[pair] @ after)
  return right.reshape(-1, n)[:count]
