"""Inverse kinematics on the host: configurations of a robot for paths of its bodies and centre of mass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from physics.model.model import Floats, Model

DAMPING = 1e-4  # of a step, in the unit of the weights
FIRST, NEXT = 60, 6  # Gauss-Newton steps of the first frame, and of one that starts from the frame before


@dataclass(frozen=True)
class Goal:
  """Path that a part of the robot follows over T frames; `weight` multiplies its squared error.

  place, turn: of the frame of `body` [T, 3] [m], quaternions [T, 4]. middle: its centre of mass [T, 3] [m].
  centre: the robot's centre of mass [T, 3] [m]. pose: hinges and slides of configurations [T, nq] [rad, m].
  """

  kind: Literal["place", "middle", "turn", "centre", "pose"]
  values: Floats
  weight: float | Floats  # of a pose, one for each hinge and slide too
  body: int = 0


def follow(model: Model, start: Floats, goals: Sequence[Goal]) -> Floats:
  """Return configurations [T, nq] with the least squared errors of all goals, within the joints' ranges.

  The search for the first frame begins at `start` [nq], and for each other frame at the one before, by the
  damped Gauss-Newton method.
  """
  mj, data = model.mj, mujoco.MjData(model.mj)
  data.qpos[:] = start
  found = np.empty((len(goals[0].values), model.nq))
  for frame in range(len(found)):
    for _ in range(NEXT if frame else FIRST):
      _improve(mj, data, goals, frame)
    found[frame] = data.qpos
  return found


def _improve(mj: mujoco.MjModel, data: mujoco.MjData, goals: Sequence[Goal], frame: int) -> None:
  """Take one step towards the goals of a frame."""
  matrix, vector = DAMPING * np.eye(mj.nv), np.zeros(mj.nv)
  add_goals(mj, data, goals, frame, matrix, vector)
  move(mj, data, np.linalg.solve(matrix, vector))


def add_goals(
  mj: mujoco.MjModel, data: mujoco.MjData, goals: Sequence[Goal], frame: int, matrix: Floats, vector: Floats
) -> None:
  """Add the normal equations of the goals of a frame, for a move from the pose of `data`."""
  mujoco.mj_kinematics(mj, data)
  mujoco.mj_comPos(mj, data)
  for goal in goals:
    jacobian, error = _linearised(mj, data, goal, frame)
    weighted = goal.weight * jacobian.T
    matrix += weighted @ jacobian
    vector += weighted @ error


def move(mj: mujoco.MjModel, data: mujoco.MjData, change: NDArray[np.floating]) -> None:
  """Move the pose of `data` by a change [nv], within the joints' ranges."""
  mujoco.mj_integratePos(mj, data.qpos, change, 1.0)
  low, high = mj.jnt_range.T
  limited = np.flatnonzero(mj.jnt_limited)
  columns = mj.jnt_qposadr[limited]
  data.qpos[columns] = np.clip(data.qpos[columns], low[limited], high[limited])


def _linearised(mj: mujoco.MjModel, data: mujoco.MjData, goal: Goal, frame: int) -> tuple[Floats, Floats]:
  """Return the Jacobian [n, nv] of a goal's error and the error [n] that is left."""
  value, jacobian = goal.values[frame], np.zeros((3, mj.nv))
  if goal.kind == "place":
    mujoco.mj_jacBody(mj, data, jacobian, None, goal.body)
    return jacobian, value - data.xpos[goal.body]
  if goal.kind == "middle":
    mujoco.mj_jacBodyCom(mj, data, jacobian, None, goal.body)
    return jacobian, value - data.xipos[goal.body]
  if goal.kind == "turn":
    mujoco.mj_jacBody(mj, data, None, jacobian, goal.body)
    error = np.zeros(3)
    mujoco.mju_subQuat(error, value, data.xquat[goal.body])  # in the body's axes
    return jacobian, data.xmat[goal.body].reshape(3, 3) @ error
  if goal.kind == "centre":
    mujoco.mj_jacSubtreeCom(mj, data, jacobian, 1)
    return jacobian, value - data.subtree_com[1]
  scalar = mj.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)
  columns = mj.jnt_dofadr[scalar]
  return np.eye(mj.nv)[columns], (value - data.qpos)[mj.jnt_qposadr[scalar]]
