"""MuJoCo C on the host, one state at a time: what a task computes before its simulation begins."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from physics.model.model import Floats, Model


def evaluate(
  model: Model, states: Mapping[str, Floats], fields: Sequence[str], steps: int = 0
) -> dict[str, Floats]:
  """Return fields of `mujoco.MjData` [n, ...] by name for n states, after `steps` time steps without control.

  `states` holds arrays [n, ...] by name, such as qpos, qvel, mocap_pos; what it lacks is the model's default.
  """
  data = mujoco.MjData(model.mj)
  found: dict[str, list[Floats]] = {name: [] for name in fields}
  for row in range(len(next(iter(states.values())))):
    mujoco.mj_resetData(model.mj, data)
    for name, values in states.items():
      getattr(data, name)[:] = values[row]
    for _ in range(steps):
      mujoco.mj_step(model.mj, data)
    mujoco.mj_forward(model.mj, data)
    for name in fields:
      found[name].append(np.array(getattr(data, name)))
  return {name: np.array(values) for name, values in found.items()}
