"""The worst that rounding of M can do to accelerations."""

import numpy as np

from physics.load import load_model
from physics.parity import converging, random_states
from tests.physics.conditioning import SOLVED, acceleration_rounding

ROD = '<geom type="capsule" fromto="0 0 0 1 0 0" size="0.05"/>'


def chain(tip):
  return load_model(f"""<mujoco><worldbody><body><joint axis="0 1 0"/>{ROD}<body pos="1 0 0">
    <joint axis="0 1 0"/>{ROD}<body pos="1 0 0"><joint axis="0 1 0"/>
    <geom size="{tip}"/></body></body></body></worldbody></mujoco>""")


def test_a_lighter_tip_feels_more_and_float64_less():
  heavy, light = chain(0.1), chain(0.01)
  states = random_states(heavy, 8)
  rough, rougher, fine = (
    acceleration_rounding(converging(model.mj), states, dtype)
    for model, dtype in ((heavy, np.float32), (light, np.float32), (light, np.float64))
  )
  for name in SOLVED:
    assert rough[name].shape == (8,)
    assert (rougher[name] > rough[name]).all()
    np.testing.assert_allclose(fine[name], rougher[name] * 2.0**-29)


def test_one_joint_loses_a_unit_or_two():
  """A pendulum at rest: M is one sum of positive terms, so that nothing cancels."""
  model = load_model(f'<mujoco><worldbody><body><joint axis="0 1 0"/>{ROD}</body></worldbody></mujoco>')
  states = random_states(model, 1)
  states.qpos[:], states.qvel[:] = 0.0, 0.0
  found = acceleration_rounding(converging(model.mj), states, np.float32)["qacc"][0]
  assert 1.9 < found / np.finfo(np.float32).eps < 8
