"""The solver's answers in float32: none costs more than its start, by the cost in float64."""

import mujoco
import numpy as np
import pytest
import torch

from physics.load import load_model
from physics.parity import random_states
from physics.parity.compare import outputs
from physics.parity.reference import converging
from physics.simulation import Simulation
from tests.instances import grouped
from tests.physics.conftest import CASES, load

ROBOTS = grouped(name for name in CASES if name.startswith("assets/"))
ROUNDING = 1e-4  # of a cost, relative to its start's: a small sum of large terms in float32
WIDE = 30.0  # [m/s^2 or rad/s^2] spread of the starts
# Stiff feet on light shanks: eliminating the legs cancels all but a millionth of the trunk's matrix.
LEG = """<body pos="{x} {y} 0"><joint axis="1 0 0"/>
  <inertial pos="0.05 0 0" mass="2.8" diaginertia="5e-3 5e-3 3e-3"/>
  <body pos="0.06 0 -0.04"><joint axis="0 1 0"/>
  <inertial pos="0 0 -0.2" mass="3" diaginertia="0.03 0.03 4e-3"/>
  <body pos="0.1 0 -0.28"><joint axis="0 1 0"/>
  <inertial pos="0 0 -0.1" mass="0.6" diaginertia="0.01 0.01 1e-3"/>
  <geom size="0.03" pos="0 0 -0.32" solimp="0.015 1 0.031" friction="0.8"/></body></body></body>"""
STIFF = f"""<mujoco><option impratio="100" iterations="100"/><default><joint damping="1"/>
  <geom contype="0"/></default><worldbody><geom type="plane" size="0 0 1" contype="1"/>
  <body pos="0 0 0.6"><freejoint/><inertial pos="0 0 0" mass="19" diaginertia="0.6 0.6 0.2"/>
  {"".join(LEG.format(x=x, y=y) for x in (0.3, -0.3) for y in (0.1, -0.1))}
  </body></worldbody></mujoco>"""


def costs(model, states, answers):
  """Return the cost of each row of accelerations [num_states, k, nv], by MuJoCo C: [num_states, k].

  It is the Gauss term plus what MuJoCo's own constraint update says of the residuals.
  """
  mj = converging(model.mj)
  data, result = mujoco.MjData(mj), np.zeros(answers.shape[:2])
  for index, rows in enumerate(answers):
    states.load(index, data)
    mujoco.mj_forward(mj, data)
    for k, qacc in enumerate(rows):
      residual, inertial, spring = np.zeros(data.nefc), np.zeros(mj.nv), np.zeros(1)
      mujoco.mj_mulJacVec(mj, data, residual, qacc)
      mujoco.mj_constraintUpdate(mj, data, residual - data.efc_aref, spring, 0)
      off = qacc - data.qacc_smooth
      mujoco.mj_mulM(mj, data, inertial, off)
      result[index, k] = 0.5 * off @ inertial + spring[0]
  return result


def worst_rise(model, states):
  """Return the largest cost of an answer less that of its start, relative to the start's."""
  random = np.random.default_rng(1)
  start = (WIDE * random.normal(size=(len(states), model.nv))).astype(np.float32)
  simulation = Simulation(model, len(states), threads=1, outputs=outputs(model))  # as in test_invariants
  states.write_to(simulation)
  simulation.qacc_warmstart[:] = torch.from_numpy(start)
  simulation.forward()
  fits = simulation.overflow.numpy() == 0
  found = simulation.qacc.double().numpy()
  before, after = costs(model, states, np.stack([start.astype(float), found], axis=1)).T
  return np.max(((after - before) / np.maximum(before, 1.0))[fits])


@pytest.mark.parametrize("name", grouped(["assets/ant", "assets/quadruped"]))
def test_no_answer_costs_more_than_its_start(name):
  model = load(name)
  assert worst_rise(model, random_states(model, 128)) < ROUNDING


def test_nor_on_stiff_feet():
  model = load_model(STIFF)
  assert worst_rise(model, random_states(model, 2000)) < ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("part", range(12))
def test_no_answer_of_a_million_costs_more_than_its_start(name, part):
  model = load(name)
  assert worst_rise(model, random_states(model, 10_000, seed=part)) < ROUNDING
