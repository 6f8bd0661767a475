"""Errors of the engine's solver and of MuJoCo C's, both stopped after the file's number of iterations."""

from typing import Any

from physics.model.model import Floats, Model
from physics.parity.reference import reference, relative_error, stopped_reference
from physics.parity.states import States


def stopping_errors(model: Model, states: States, simulation: Any) -> tuple[Floats, Floats]:
  """Return per state the relative errors [num_states] of the engine's qacc and of MuJoCo C's.

  Both stop after `model.iterations`, and both are compared with the solution, which MuJoCo C finds without
  that limit. Their answers are not compared with each other: two solvers that stop early take different
  paths, and may be far apart while both are right.

  Args:
    model: its file says after how many iterations MuJoCo C stops.
    states: warm starts included.
    simulation: the engine, which computes the output `qacc` for one environment per state.
  """
  simulation.reset()
  states.write_to(simulation)
  simulation.forward()
  solution = reference(model, states).qacc
  found = simulation.qacc.double().cpu().numpy()
  return relative_error(found, solution), relative_error(stopped_reference(model, states).qacc, solution)
