"""Springs, dampers and gravity compensation on plain numbers, against MuJoCo and by hand."""

import numpy as np
import pytest

from physics.dynamics.passive import damper_slopes, gravity_compensation
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import CASES, load
from tests.physics.oracle import mujoco_at, smooth_of

MODELS = ("springs", "tendons", "fluid", "gymnasium/half_cheetah", "gymnasium/humanoid")


@pytest.mark.parametrize("name", [*MODELS, "ellipsoids"])
def test_forces_are_mujocos(name):
  model = load(name)
  states = random_states(model, 8)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    data = mujoco_at(model, qpos, qvel)
    assert np.abs(data.qfrc_passive).max() > 0.01
    np.testing.assert_allclose(smooth_of(model, data).passive, data.qfrc_passive, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_damping_is_the_derivative_of_the_forces(name):
  """By central differences, exact for polynomials of second degree on one side of zero."""
  model, h = load(name), 1e-6
  states = random_states(model, 3)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    found = np.zeros((model.nv, model.nv))
    for (i, j), value in smooth_of(model, mujoco_at(model, qpos, qvel)).damping.items():
      found[i, j] = found[j, i] = value
    for dof, step in enumerate(h * np.eye(model.nv)):
      ahead, behind = (mujoco_at(model, qpos, qvel + move).qfrc_passive for move in (step, -step))
      np.testing.assert_allclose(found[dof], (behind - ahead) / (2 * h), rtol=1e-6, atol=1e-6)


def one_joint(joint, body=""):
  return load_model(f"""<mujoco><worldbody>
    <body {body}><joint {joint}/><geom size="1" pos="0.5 0 0"/></body></worldbody></mujoco>""")


def passive(model, qpos, qvel):
  return smooth_of(model, mujoco_at(model, qpos, qvel)).passive


def test_a_spring_pulls_back_and_a_damper_brakes():
  model = one_joint('type="slide" stiffness="3" springref="0.5" damping="2"')
  assert passive(model, [0.75], [0.0]) == [-0.75]
  assert passive(model, [0.5], [4.0]) == [-8.0]


def test_polynomials_stiffen_springs_one_way_and_dampers_both_ways():
  model = one_joint('type="slide" stiffness="3 1" damping="2 0 1"')
  assert [passive(model, [x], [0.0]) for x in (0.5, -0.5)] == [[-1.75], [1.25]]
  assert [passive(model, [0.0], [v]) for v in (2.0, -2.0)] == [[-12.0], [12.0]]
  assert damper_slopes(model, [2.0]) == damper_slopes(model, [-2.0]) == [14.0]


def test_a_ball_spring_turns_the_short_way_back():
  model = one_joint('type="ball" stiffness="2"')
  for angle, back in ((0.5, -0.5), (2 * np.pi - 0.5, 0.5)):
    qpos = [np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0]
    np.testing.assert_allclose(passive(model, qpos, [0.0] * 3), [0, 2 * back, 0], atol=1e-12)


def test_compensated_bodies_are_weightless():
  model = one_joint('axis="0 1 0"', 'gravcomp="1"')
  data = mujoco_at(model, [0.3])
  smooth = smooth_of(model, data)
  np.testing.assert_allclose(smooth.force, [0], atol=1e-9)
  np.testing.assert_allclose(gravity_compensation(model, smooth.poses), data.qfrc_gravcomp, atol=1e-12)


def test_actuators_can_be_left_to_compensate():
  model = one_joint('axis="0 1 0" actuatorgravcomp="true"', 'gravcomp="1"')
  smooth = smooth_of(model, mujoco_at(model, [0.3]))
  assert smooth.passive == [0.0]
  assert abs(gravity_compensation(model, smooth.poses)[0]) > 1.0


@pytest.mark.parametrize("flags", ["spring", "damper", "gravity", "spring damper"])
def test_flags_switch_forces_off_as_in_mujoco(flags):
  text = CASES["fluid"].read_text()
  disabled = " ".join(f'{flag}="disable"' for flag in flags.split())
  model = load_model(text.replace("<worldbody>", f"<option><flag {disabled}/></option><worldbody>"))
  states = random_states(model, 2)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    data = mujoco_at(model, qpos, qvel)
    np.testing.assert_allclose(smooth_of(model, data).passive, data.qfrc_passive, rtol=1e-12, atol=1e-12)
