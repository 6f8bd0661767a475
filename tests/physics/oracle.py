"""Pieces of the engine on numbers: traced functions in float64, MuJoCo's answer at one state."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mujoco
import numpy as np

from physics.model.model import Floats, Model
from physics.smooth import Smooth, smooth_dynamics
from physics.state.state import State
from physics.trace.compact import CompactList, Entry
from physics.trace.emit_numpy import numpy_function
from physics.trace.trace import Number, Program


def evaluate(function: Callable[..., Iterable[Number]], *inputs: Any) -> Floats:
  """Trace function(program, *scalars) and return its results [result, env] for the inputs, each [env]."""
  program, rows = Program(), np.array(inputs, dtype=float)
  results = list(function(program, *(program.read_memory("inputs", i) for i in range(len(rows)))))
  for i, result in enumerate(results):
    program.write_memory("outputs", i, result)
  outputs = np.full((len(results), rows.shape[1]), np.nan)
  numpy_function(program.finish())(inputs=rows, outputs=outputs)
  return outputs


def mujoco_at(
  model: Model, qpos: Any, qvel: Any = None, ctrl: Any = None, mocap: Any = None
) -> mujoco.MjData:
  """Return MuJoCo's data after `mj_forward` in a state, velocities and controls zero if not given.

  `mocap` holds positions [nmocap, 3] and quaternions [nmocap, 4], the model's if not given.
  """
  data = mujoco.MjData(model.mj)
  data.qpos[:] = qpos
  data.qvel[:] = 0.0 if qvel is None else qvel
  data.ctrl[:] = 0.0 if ctrl is None else ctrl
  if mocap is not None:
    data.mocap_pos[:], data.mocap_quat[:] = mocap
  mujoco.mj_forward(model.mj, data)
  return data


def state_of(data: mujoco.MjData) -> State:
  """Return MuJoCo's state on plain numbers."""
  names = [field.name for field in dataclasses.fields(State)]
  return State(**{name: getattr(data, name).ravel().tolist() for name in names})


def smooth_of(model: Model, data: mujoco.MjData) -> Smooth:
  """Return the smooth dynamics on plain numbers in MuJoCo's state."""
  return smooth_dynamics(model, state_of(data))


def dense(matrix: Any) -> Floats:
  """Return a tree matrix of numbers [nv, nv], both triangles."""
  full = np.zeros((matrix.n, matrix.n))
  for (i, j), value in matrix.entries.items():
    full[i, j] = full[j, i] = value
  return full


def collect(
  program: Program, found: CompactList, describe: Callable[[Entry], Sequence[Number]], width: int
) -> list[Number]:
  """Return the `width` numbers that `describe` makes of each entry, slot after slot; zero where unused."""
  slots = program.array(width * found.capacity)
  slots.fill([0.0] * len(slots))
  with found.each() as entry:
    for k, value in enumerate(describe(entry)):
      slots[entry.index * width + k] = value
  return slots.read()


def assert_same_rows(found: Floats, expected: Floats, tolerance: float = 1e-9) -> None:
  """Assert that two tables [n, k] hold the same rows, in any order."""
  assert len(found) == len(expected)
  if len(found):
    distance = np.abs(found[:, None] - expected[None]).max(axis=2)
    assert max(distance.min(axis=0).max(), distance.min(axis=1).max()) < tolerance
