"""Random models against MuJoCo C: a few of them here, 850 in `make fuzz`."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture import providers

from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.compare import DOUBLE, GIVEN, OTHER_CORNERS, SINGLE, STATES_OPEN, Trial, outputs
from physics.parity.reference import converged
from physics.simulation import Simulation
from tests.physics.conditioning import IllConditionedTrial
from tests.physics.mjcf import EXTRAS, models

STATES = 12
UNBOUNDED = ("overflow", STATES_OPEN, OTHER_CORNERS, GIVEN)
# Light links at the ends of long chains, constraints that fight: common here and rare in robots.
ROUGH = dataclasses.replace(SINGLE, rounding=6.0)
# The same models in every run. They are not shrunk: that would take hours, and the text of one says enough.
SAME = settings(
  database=None,
  deadline=None,
  phases=[Phase.generate],
  suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def no_constants_of_ours(monkeypatch):
  """Keep the numbers in this project's files out of the draw: any commit would change the models."""
  monkeypatch.setattr(providers, "_get_local_constants", lambda: providers._local_constants)


def disagreements(xml, engine, tolerances):
  """Return what differs from MuJoCo C in states of a model.

  States with more contacts than fit are left out, those that explode, half a turn in a time step, and those
  in which a search has other contacts. Searches and sweeps of noslip go on until they converge.
  """
  model = converged(load_model(xml))
  make = IllConditionedTrial if tolerances is ROUGH else Trial
  trial = make(model, random_states(model, STATES))
  simulation = engine(model)
  caused = trial.stages(simulation, tolerances)
  fits = simulation.overflow.numpy() == 0
  caused += trial.step(simulation, tolerances)
  touching = trial.contacts(tolerances) if fits.all() else []
  fits &= model.timestep * np.abs(trial.expected.qvel).max(axis=1, initial=0.0) < np.pi
  wrong = []
  for findings, states in ((caused, trial.compared(tolerances)), (touching, trial.alike(tolerances))):
    counted = [each for each in findings if each.quantity not in UNBOUNDED and fits[states].any()]
    wrong += [dataclasses.replace(each.at(fits[states]), median=np.inf) for each in counted]
  return [str(finding) for finding in wrong if not finding.holds]


def oracle(model):
  return NumpySimulation(model, STATES, outputs(model))


def kernel(model):
  return Simulation(model, STATES, threads=1, outputs=outputs(model))


def assert_agree(drawn, engine, tolerances, count, number=0):
  """Assert that `count` models agree with MuJoCo C; each number has others, the same in every run."""

  @seed(number)
  @settings(SAME, max_examples=count)
  @given(drawn)
  def compare(xml):
    assert disagreements(xml, engine, tolerances) == []

  compare()


def test_random_models_are_mujocos_mathematics():
  assert_agree(models(most_bodies=12), oracle, DOUBLE, 8)


def test_kernels_of_random_models_agree_within_rounding():
  assert_agree(models(most_bodies=4), kernel, ROUGH, 3)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_models_are_mujocos_mathematics(part):
  assert_agree(models(), oracle, DOUBLE, 25, part)


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_many_random_models_of_a_kind_are_mujocos_mathematics(extra):
  assert_agree(models(most_bodies=6, extra=extra), oracle, DOUBLE, 50)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_kernels_of_many_random_models_agree_within_rounding(part):
  assert_agree(models(most_bodies=4), kernel, ROUGH, 25, part)


def test_finds_a_fault():
  def heavier(model):
    return oracle(dataclasses.replace(model, gravity=model.gravity * (1 + 1e-6)))

  xml = '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
  assert disagreements(xml, oracle, DOUBLE) == []
  assert disagreements(xml, heavier, DOUBLE)[0].startswith("qfrc_bias")
