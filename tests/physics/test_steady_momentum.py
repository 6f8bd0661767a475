"""A floating trunk with a swinging leg: its angular momentum is constant where it is asked to be."""

import mujoco
import numpy as np
import pytest

import physics
from physics.inverse_kinematics import Goal
from physics.steady_momentum import steady

SWINGING = """
<mujoco>
  <worldbody>
    <body name="trunk">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.2" mass="3"/>
      <body name="leg" pos="0 0 -0.2">
        <joint name="hip" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05" mass="1"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""
FRAMES, STEP = 31, 0.02
FLIGHT = slice(10, 21)


def momenta(model, qpos):
  """Return the angular momenta about the centre of mass [T - 2, 3] by central differences."""
  data, found = mujoco.MjData(model.mj), []
  for before, now, after in zip(qpos[:-2], qpos[1:-1], qpos[2:], strict=True):
    data.qpos[:] = now
    mujoco.mj_differentiatePos(model.mj, data.qvel, 2 * STEP, before, after)
    mujoco.mj_forward(model.mj, data)
    mujoco.mj_subtreeVel(model.mj, data)
    found.append(data.subtree_angmom[1].copy())
  return np.array(found)


@pytest.fixture
def swing():
  """Return a model, a path whose leg swings to and fro below a still trunk, and the goals of that path."""
  model = physics.load_model(SWINGING)
  qpos = np.tile(model.qpos0, (FRAMES, 1))
  qpos[:, 7] = 0.6 * np.sin(np.arange(FRAMES) / 5)
  centre = np.tile([0.0, 0.0, 0.0], (FRAMES, 1))
  turn = np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, 1))
  return model, qpos, [
    Goal("centre", centre, 1e4), Goal("turn", turn, 10.0, 1), Goal("pose", qpos, np.array([300.0]))
  ]  # fmt: skip


def test_the_angular_momentum_is_constant_where_torques_have_a_large_weight(swing):
  model, qpos, goals = swing
  weight = np.full(FRAMES, 1e-3)
  weight[FLIGHT] = 10.0
  before = momenta(model, qpos)[FLIGHT]
  assert np.ptp(before[:, 1]) > 0.3
  found = steady(model, qpos, goals, weight, STEP)
  flight = momenta(model, found)[FLIGHT][:-2]
  assert np.ptp(flight, axis=0).max() < 0.02
  assert np.abs(found[:, 7] - qpos[:, 7]).max() < 0.15
  assert np.abs(found[:, 4:6]).max() > 0.02  # the trunk turns against the leg


def test_without_weight_on_torques_the_goals_are_met(swing):
  model, qpos, goals = swing
  for count in (FRAMES, FRAMES - 1):
    shorter = [Goal(goal.kind, goal.values[:count], goal.weight, goal.body) for goal in goals]
    found = steady(model, qpos[:count] + 0.01, shorter, np.zeros(count), STEP)
    np.testing.assert_allclose(found[:, 7], qpos[:count, 7], atol=1e-4)
    np.testing.assert_allclose(found[:, 4:7], 0.0, atol=1e-4)
