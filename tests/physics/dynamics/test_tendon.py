"""Wraps of tendons; test_parity.py compares their forces in tests/models/*tendons.xml."""

import mujoco
import pytest

from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at, smooth_of


def test_each_way_of_wrapping_is_met_by_the_random_states():
  model = load("spatial_tendons")
  met = {name: set() for name in model.tendon_names}
  states = random_states(model, 64)
  for qpos in states.qpos:
    data = mujoco_at(model, qpos)
    for name, count in zip(met, data.ten_wrapnum.tolist(), strict=True):
      met[name].add(count)
  assert {name: len(counts) for name, counts in met.items()} == {
    "rope": 1,
    "flexor": 2,
    "extensor": 3,
    "sheath": 2,
    "hoist": 3,
    "twin": 1,
  }


def test_moment_arms_of_an_inside_wrap_are_the_slopes_of_its_length():
  model = load("spatial_tendons")
  sheath = model.tendon_names.index("sheath")
  states = random_states(model, 16)
  step = 1e-6
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    velocity = smooth_of(model, mujoco_at(model, qpos, qvel)).tendons.velocity[sheath]
    lengths = []
    for sign in (-1.0, 1.0):
      moved = qpos.copy()
      mujoco.mj_integratePos(model.mj, moved, qvel, sign * step)
      lengths.append(smooth_of(model, mujoco_at(model, moved)).tendons.length[sheath])
    assert velocity == pytest.approx((lengths[1] - lengths[0]) / (2.0 * step), abs=1e-7)
