"""Drag by hand; test_passive.py compares it with MuJoCo."""

import math

import pytest

from physics.dynamics.fluid import drags
from physics.load import load_model
from tests.physics.oracle import mujoco_at, smooth_of


def drag_of_a_box(options, velocity):
  """Return the drag on a box of 1 x 2 x 3 m that moves and turns at `velocity` [6], linear part first."""
  model = load_model(f"""<mujoco><option gravity="0 0 0" {options}/><worldbody><body><freejoint/>
    <geom type="box" size="0.5 1 1.5" contype="0" conaffinity="0"/></body></worldbody></mujoco>""")
  smooth = smooth_of(model, mujoco_at(model, model.qpos0, velocity))
  return [each.force for each in drags(model, smooth.poses, smooth.velocity)]


def test_pressure_acts_on_faces():
  (drag,) = drag_of_a_box('density="10"', [2, 0, -1, 0, 0, 0])
  assert drag.force == pytest.approx((-0.5 * 10 * 6 * 4, 0, 0.5 * 10 * 2 * 1))
  assert drag.torque == pytest.approx((0, 0, 0))


def test_friction_is_that_of_a_sphere_of_mean_size():
  (drag,) = drag_of_a_box('viscosity="0.1"', [0, 3, 0, 0, 0, -1])
  assert drag.force == pytest.approx((0, -3 * math.pi * 2 * 0.1 * 3, 0))
  assert drag.torque == pytest.approx((0, 0, math.pi * 8 * 0.1))


def test_a_body_that_drifts_with_the_wind_feels_nothing():
  (drag,) = drag_of_a_box('density="10" viscosity="1" wind="1 2 3"', [1, 2, 3, 0, 0, 0])
  assert drag.components == pytest.approx([0] * 6)


def test_without_a_fluid_there_is_no_drag():
  assert drag_of_a_box("", [1, 2, 3, 4, 5, 6]) == []
