"""Springs and dampers on plain numbers, against MuJoCo and by hand."""

import numpy as np
import pytest

from physics.load import load_model
from physics.parity import random_states
from physics.passive import passive_forces
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at


@pytest.mark.parametrize("name", ["springs", "gymnasium/half_cheetah", "gymnasium/humanoid"])
def test_forces_are_mujocos(name):
  model = load(name)
  states = random_states(model, 8)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    expected = mujoco_at(model, qpos, qvel).qfrc_passive
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(passive_forces(model, qpos.tolist(), qvel.tolist()), expected, atol=1e-11)


def test_a_spring_pulls_back_and_a_damper_brakes():
  model = load_model("""<mujoco><worldbody>
    <body><joint type="slide" stiffness="3" springref="0.5" damping="2"/><geom size="1"/></body>
  </worldbody></mujoco>""")
  assert passive_forces(model, [0.75], [0.0]) == [-0.75]
  assert passive_forces(model, [0.5], [4.0]) == [-8.0]


def test_a_ball_spring_turns_the_short_way_back():
  model = load_model("""<mujoco><worldbody>
    <body><joint type="ball" stiffness="2"/><geom size="1"/></body>
  </worldbody></mujoco>""")
  for angle, back in ((0.5, -0.5), (2 * np.pi - 0.5, 0.5)):
    qpos = [np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0]
    force = passive_forces(model, list(map(float, qpos)), [0.0] * 3)
    np.testing.assert_allclose(force, [0, 2 * back, 0], atol=1e-12)
