"""Random models against MuJoCo C."""

from hypothesis import HealthCheck, event, given, settings

from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.compare import DOUBLE, Trial, outputs
from physics.simulation import Simulation
from tests.physics.mjcf import models

STATES = 12
# The same models in every run; a search for new ones is `make fuzz`.
SAME = settings(
  deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)


def disagreements(xml, engine, precision):
  """Return what differs from MuJoCo C in states of a model; states with more contacts than fit do not count."""
  model = load_model(xml)
  event(f"{10 * (model.nbody // 10)} bodies or more")
  trial = Trial(model, random_states(model, STATES))
  simulation = engine(model)
  findings = trial.stages(simulation, precision)
  fits = simulation.overflow.numpy() == 0
  findings = [*findings[:-1], *trial.step(simulation, precision)]
  if fits.all():
    findings += trial.contacts(precision)
  return [str(f) for f in findings if not f.at(fits).holds]


def oracle(model):
  return NumpySimulation(model, STATES, outputs(model))


def kernel(model):
  return Simulation(model, STATES, threads=1, outputs=outputs(model))


@settings(SAME, max_examples=30)
@given(models())
def test_random_models_are_mujocos_mathematics(xml):
  assert disagreements(xml, oracle, DOUBLE) == []
