"""Delayed controls against MuJoCo's history buffers, and the weights of samples by hand."""

import numpy as np
import pytest

from physics.state.delay import CUBIC, HOLD, LINEAR, past_rows, sample_weights
from tests.physics.rig import assert_moves_as_mujoco, machine

STEP = 0.001953125  # of the machine [s]
KINDS = ("zoh", "linear", "cubic")


def weights(count, kind, age):
  """Return the weights of samples of the ages `count`, ..., 2, 1."""
  return np.array(sample_weights([float(each) for each in range(count, 0, -1)], kind, age))


def delayed(joint, delay, nsample, interp):
  return f'<motor joint="{joint}" delay="{delay * STEP}" nsample="{nsample}" interp="{interp}"/>'


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
@pytest.mark.parametrize("interp", KINDS)
def test_motion_is_mujocos(interp, integrator):
  delays = [(0.3, 1), (1, 1), (1, 2), (1.5, 4), (2, 2), (2.25, 4), (3.75, 4), (4, 4), (9, 3)]
  model = machine("".join(delayed("slide", *each, interp) for each in delays), integrator)
  assert past_rows(model) == sum(nsample for _, nsample in delays)
  assert_moves_as_mujoco(model)


def test_controls_of_one_actuator_are_delayed_together_and_others_not_at_all():
  pid = f'<pid joint="hinge" kp="2" kv="0.3" ki="1" delay="{1.5 * STEP}" nsample="3" interp="cubic"/>'
  model = machine(pid + '<motor joint="slide"/><motor joint="hinge" nsample="5"/>')
  assert past_rows(model) == 6
  assert_moves_as_mujoco(model)


@pytest.mark.parametrize("kind", [HOLD, LINEAR, CUBIC])
def test_samples_themselves_are_read_exactly(kind):
  for age in (1, 2, 3):
    np.testing.assert_array_equal(weights(3, kind, age), np.eye(3)[3 - age])
    np.testing.assert_allclose(weights(3, kind, age + 1e-9), np.eye(3)[3 - age], atol=1e-8)
  np.testing.assert_array_equal(weights(3, kind, 0.5), [0, 0, 1])
  np.testing.assert_array_equal(weights(3, kind, 7.0), [1, 0, 0])


def test_between_samples_weights_hold_mix_or_bend():
  np.testing.assert_array_equal(weights(4, HOLD, 2.25), [0, 1, 0, 0])
  np.testing.assert_allclose(weights(4, LINEAR, 2.25), [0, 0.25, 0.75, 0])
  np.testing.assert_allclose(weights(4, CUBIC, 2.5), [-1 / 16, 9 / 16, 9 / 16, -1 / 16])
  np.testing.assert_allclose(weights(2, CUBIC, 1.5), [0.5, 0.5])
  assert weights(4, CUBIC, 3.3).sum() == pytest.approx(1)


def test_samples_may_be_unevenly_apart():
  ages = [7.0, 3.0, 2.0]
  np.testing.assert_allclose(sample_weights(ages, HOLD, 3.5), [1, 0, 0])
  np.testing.assert_allclose(sample_weights(ages, LINEAR, 4.0), [0.25, 0.75, 0])
  found = np.dot(sample_weights(ages, CUBIC, 4.0), [1.0, 2.0, 5.0])
  x, slope = 0.75, (5.0 - 1.0) / 5.0  # of Hermite's cubic from 1, level, to 2, rising as the neighbours do
  expected = (2 * x**3 - 3 * x**2 + 1) * 1.0 + (3 * x**2 - 2 * x**3) * 2.0 + (x**3 - x**2) * 4.0 * slope
  assert found == pytest.approx(expected)
