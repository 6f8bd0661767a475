"""The engine against MuJoCo C on every model: in float64 without compilation, then as a float32 kernel."""

import dataclasses

import pytest

from physics.parity.compare import DOUBLE, SINGLE
from physics.parity.open_loop import rollout
from tests.instances import grouped
from tests.physics.reports import assert_holds

# A kernel computes what the traced program says: these together use every part of the engine.
COMPOSITE = (
  "actuators",
  "convex",
  "cranks",
  "drives",
  "ellipsoids",
  "equalities",
  "gymnasium/humanoid",
  "height_field",
  "implicitfast",
  "light_links",
  "muscles",
  "noslip_elliptic",
  "plastic",
  "sensors",
  "solids",
  "spatial_tendons",
  "sticky",
)
# They remember more than positions and velocities, or touch the ground.
ROLLED = ("actuators", "drives", "gymnasium/humanoid", "implicitfast", "muscles", "plastic", "sensors")
# In one of its states the axes of two capsules pass at 0.1 mm: what rounding leaves of their normal is worth
# thirty units of the position, where three do elsewhere.
ROUGHER = {"gymnasium/humanoid": 30.0}


def test_traced_program_is_mujocos_mathematics(case):
  assert_holds(case.random.contacts(DOUBLE) + case.random.stages(case.oracle, DOUBLE))


def test_traced_step_is_mujocos(case):
  assert_holds(case.random.step(case.oracle, DOUBLE) + case.recorded.step(case.oracle, DOUBLE))


@pytest.mark.parametrize("case", grouped(COMPOSITE), indirect=True, scope="module")
def test_a_kernel_agrees_with_mujoco(case):
  """Stage by stage and in single steps; open loops part no faster than rounding lets them."""
  tolerances = dataclasses.replace(SINGLE, rounding=ROUGHER.get(case.name, SINGLE.rounding))
  assert_holds(case.random.contacts(tolerances) + case.random.stages(case.kernel, tolerances))
  assert_holds(case.recorded.step(case.kernel, SINGLE))
  if case.name in ROLLED:
    assert_holds([rollout(case.model, case.kernel)])
