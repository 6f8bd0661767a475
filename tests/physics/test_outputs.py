"""Every derived quantity against MuJoCo's, in states in motion and in contact."""

import numpy as np
import pytest

from physics.outputs import VALUES
from physics.parity import random_states
from physics.state.layout import COUNTERS, STATE, field_shapes
from tests.physics.conftest import load
from tests.physics.reports import assert_equal, reports

COMPARED = sorted(set(VALUES) - set(COUNTERS))


def test_every_field_has_values():
  shapes = field_shapes(load("sensors"))
  assert set(VALUES) == set(shapes) - {*STATE, "mask"}


@pytest.mark.parametrize("name", ["sensors", "equalities", "static_shapes", "free_bodies", "tendons"])
def test_outputs_are_mujocos(name):
  model = load(name)
  for field, (found, expected) in reports(model, random_states(model, 12), COMPARED).items():
    assert_equal(found.reshape(expected.shape), expected, field)
    assert name != "sensors" or np.abs(found).max() > 0, f"{field} is zero everywhere"
