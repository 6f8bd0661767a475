"""Parity with MuJoCo C: engines with one interface, states to compare in, error bounds from rounding.

`python -m physics.parity robot.xml` compares any model. MuJoCo and the oracle compute in float64. States
are float32 numbers, so all engines start from the same ones.
"""

from physics.engines import MujocoSimulation, NumpySimulation
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
  "one_ulp_effect",
  "random_states",
  "recorded_states",
  "reference",
  "relative_error",
]
