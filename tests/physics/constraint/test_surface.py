"""Surface velocities, by what they do to a body; `tests/models/surfaces*.xml` compare them with MuJoCo."""

import numpy as np
import pytest

from physics.load import load_model
from physics.parity import NumpySimulation

SCENE = """<mujoco><option timestep="0.005" {option}/><worldbody>
  <geom type="{shape}" size="9 9 0.1" condim="{condim}" surfacevel="{velocity}" euler="0 0 90"/>
  <body pos="0.5 0 {height}"><freejoint/><geom type="box" size="0.05 0.05 0.05" condim="{condim}"/></body>
</worldbody></mujoco>"""


def settled(velocity, shape="plane", height=0.05, condim=4, option=""):
  """Return position and velocity of a box after 1.5 seconds on a surface turned by 90 degrees."""
  xml = SCENE.format(velocity=velocity, shape=shape, height=height, condim=condim, option=option)
  simulation = NumpySimulation(load_model(xml), 1)
  simulation.step(300)
  return simulation.qpos[0].numpy(), simulation.qvel[0].numpy()


@pytest.mark.parametrize(
  ("shape", "height", "option"), [("plane", 0.05, 'cone="elliptic"'), ("box", 0.15, "")]
)
def test_a_belt_carries_a_box_at_its_speed(shape, height, option):
  qpos, qvel = settled("0.4 0 0.7 0 0 0", shape, height, option=option)  # the normal part has no effect
  np.testing.assert_allclose(qvel, [0.0, 0.4, 0.0, 0.0, 0.0, 0.0], atol=2e-3)
  assert qpos[2] == pytest.approx(height, abs=1e-3)


def test_a_turntable_turns_a_box_about_its_axis():
  qpos, qvel = settled("0 0 0 0 0 1", option='impratio="10"')
  radius = np.hypot(*qpos[:2])
  assert np.hypot(*qvel[:2]) == pytest.approx(radius, rel=0.02)
  assert qvel[5] == pytest.approx(1.0, rel=0.02)
  assert abs(np.dot(qpos[:2], qvel[:2])) < 0.05  # round and round


def test_without_friction_nothing_is_carried():
  _, qvel = settled("1 0 0 0 0 1", condim=1)
  np.testing.assert_allclose(qvel, 0.0, atol=1e-9)
