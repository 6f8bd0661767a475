"""Random play: long runs under random controls, which show dropped contacts and divergence."""

from typing import Any

import mujoco
import numpy as np
import torch
from mujoco import mjtWarning

from physics.model.model import Bools, Floats, Model
from physics.parity.finding import Finding
from physics.parity.states import random_controls

CONTROL_STEPS = 200
CONTROL_PERIOD = 0.02  # [s] for which a control is held
ERRORS = 2.0  # standard errors by which a share may be larger than MuJoCo C's
RESETS = (mjtWarning.mjWARN_BADQPOS, mjtWarning.mjWARN_BADQVEL, mjtWarning.mjWARN_BADQACC)


def random_play(model: Model, simulation: Any, seed: int = 0) -> list[Finding]:
  """Play 200 control steps with random controls from the model's initial state, in every environment.

  No contact may be dropped. Environments may diverge if MuJoCo C diverges too: in as large a share of them,
  under the same controls, within the sampling error.
  """
  random = np.random.default_rng(seed)
  substeps = max(1, round(CONTROL_PERIOD / model.timestep))
  simulation.reset()
  dropped, diverged = np.zeros(simulation.num_envs), np.zeros(simulation.num_envs, bool)
  controls = []
  for _ in range(CONTROL_STEPS):
    controls.append(np.stack([random_controls(model, random) for _ in range(simulation.num_envs)]))
    simulation.ctrl[:] = torch.from_numpy(controls[-1].astype(np.float32))
    simulation.step(substeps)
    dropped = np.maximum(dropped, simulation.overflow.cpu().numpy())
    diverged |= simulation.diverged.cpu().numpy() > 0
  share = diverged.mean()
  theirs = _diverges(model.mj, np.stack(controls), substeps).mean() if share else 0.0
  chance = np.sqrt(2.0 * theirs * (1.0 - theirs) / simulation.num_envs)  # standard error of the difference
  allowed = theirs + ERRORS * chance
  return [
    Finding("dropped contacts", dropped, np.zeros_like(dropped)),
    Finding("diverging share", np.array([share]), np.array([allowed])),
  ]


def _diverges(mj: mujoco.MjModel, controls: Floats, substeps: int) -> Bools:
  """Return which environments MuJoCo C resets under controls [control steps, environments, nu]."""
  data, found = mujoco.MjData(mj), np.zeros(controls.shape[1], bool)
  for env in range(controls.shape[1]):
    mujoco.mj_resetData(mj, data)
    for control in controls[:, env]:
      data.ctrl[:] = control
      mujoco.mj_step(mj, data, substeps)
      if any(data.warning[warning].number for warning in RESETS):
        found[env] = True
        break
  return found
