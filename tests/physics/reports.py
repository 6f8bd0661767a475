"""The engine in float64 without compilation beside MuJoCo: what it reports of states, where it moves."""

from collections.abc import Iterable

import mujoco
import numpy as np

from physics.engines.mujoco_engine import read_field
from physics.model.model import Floats, Model
from physics.parity import NumpySimulation, random_states
from physics.parity.compare import DOUBLE, Finding, Trial, outputs
from physics.parity.reference import converging
from physics.parity.states import States


def reports(model: Model, states: States, names: Iterable[str]) -> dict[str, tuple[Floats, Floats]]:
  """Return by name what the engine and what MuJoCo report of states, each [num_states, ...]."""
  names = tuple(names)
  simulation = NumpySimulation(model, len(states), names)
  states.write_to(simulation)
  simulation.forward()
  mj = converging(model.mj)
  data = mujoco.MjData(mj)
  expected: dict[str, list[Floats]] = {name: [] for name in names}
  for i in range(len(states)):
    mujoco.mj_resetData(mj, data)
    states.load(i, data)
    mujoco.mj_forward(mj, data)
    for complete in (
      mujoco.mj_rnePostConstraint,
      mujoco.mj_subtreeVel,
      mujoco.mj_energyPos,
      mujoco.mj_energyVel,
    ):
      complete(mj, data)
    for name, values in expected.items():
      values.append(np.array(read_field(mj, data, name)))
  return {name: (getattr(simulation, name).numpy(), np.array(values)) for name, values in expected.items()}


def assert_holds(findings: Iterable[Finding]) -> None:
  assert [str(finding) for finding in findings if not finding.holds] == []


def assert_agrees(model: Model, count: int = 8) -> list[str]:
  """Assert that contacts, stages and a time step are MuJoCo's in random states; return what was compared."""
  trial, simulation = Trial(model, random_states(model, count)), NumpySimulation(model, count, outputs(model))
  findings = trial.contacts(DOUBLE) + trial.stages(simulation, DOUBLE) + trial.step(simulation, DOUBLE)
  assert_holds(findings)
  return [finding.quantity for finding in findings]


def assert_equal(found: Floats, expected: Floats, label: str) -> None:
  """Assert agreement to 1e-9 of the largest expected value, or of 1."""
  scale = max(1.0, np.abs(expected).max(initial=0.0))
  np.testing.assert_allclose(found, expected, atol=1e-9 * scale, rtol=0, err_msg=label)
