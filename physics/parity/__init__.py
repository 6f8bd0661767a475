"""MuJoCo C as the reference: engines behind one contract, states to compare on, what rounding may explain.

`python -m physics.parity robot.xml` compares any model. MuJoCo and the oracle compute in float64; states are
float32 numbers, so that all engines start from equal ones.
"""

from physics.parity.engines import MujocoSimulation, NumpySimulation, full_mass_matrix
from physics.parity.reference import (
  PipelineResults,
  converging,
  one_ulp_effect,
  reference,
  relative_error,
)
from physics.parity.states import States, random_states, recorded_states

__all__ = [
  "MujocoSimulation",
  "NumpySimulation",
  "PipelineResults",
  "States",
  "converging",
  "full_mass_matrix",
  "one_ulp_effect",
  "random_states",
  "recorded_states",
  "reference",
  "relative_error",
]
