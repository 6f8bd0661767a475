"""The models that the engine is compared on, with states and MuJoCo's answers, made once per module."""

import functools
import os
import warnings
from pathlib import Path

import gymnasium
import pytest
import torch

from physics.load import load_model
from physics.model.model import Model
from physics.parity import NumpySimulation, random_states, recorded_states
from physics.parity.compare import Trial, outputs
from physics.parity.reference import converged
from physics.simulation import Simulation
from tests.instances import grouped

ROOT = Path(__file__).parents[2]
GYMNASIUM = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
SHIPPED = (
  "ant",
  "half_cheetah",
  "hopper",
  "humanoid",
  "humanoidstandup",
  "inverted_double_pendulum",
  "inverted_pendulum",
  "pusher_v5",
  "reacher",
  "swimmer",
  "walker2d_v5",
)
CASES = {
  **{f"gymnasium/{name}": GYMNASIUM / f"{name}.xml" for name in SHIPPED},
  **{f"assets/{path.parent.name}": path for path in sorted(ROOT.glob("assets/*/robot.xml"))},
  **{path.stem: path for path in sorted(ROOT.glob("tests/models/*.xml"))},
}
CASES |= {  # texts of files with other options
  name: CASES[file].read_text().replace(old, new, 1)
  for name, file, old, new in (
    ("elliptic", "condim", "<option", '<option cone="elliptic" impratio="4"'),
    ("noslip", "noslip_elliptic", 'cone="elliptic"', 'cone="pyramidal"'),
    ("rk4", "implicitfast", 'integrator="implicitfast"', 'integrator="RK4"'),
    ("surfaces_elliptic", "surfaces", "<option", '<option cone="elliptic" impratio="3"'),
  )
}
NUM_STATES = int(os.environ.get("PARITY_STATES", "48"))


@functools.cache
def load(name: str) -> Model:
  """Load a model by its name in CASES, as shipped; tests leave it as it is."""
  with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="the file asks for the PGS solver")
    return load_model(CASES[name])


class Case:
  """A model that iterates to the end, states of it, and the engine in float64 and as a float32 kernel."""

  def __init__(self, name: str, device: torch.device) -> None:
    self.name, self.model, self.device = name, converged(load(name)), device

  @functools.cached_property
  def random(self) -> Trial:
    """States drawn at random."""
    return Trial(self.model, random_states(self.model, NUM_STATES))

  @functools.cached_property
  def recorded(self) -> Trial:
    """States of MuJoCo's trajectories."""
    return Trial(self.model, recorded_states(self.model, NUM_STATES))

  @functools.cached_property
  def oracle(self) -> NumpySimulation:
    return NumpySimulation(self.model, NUM_STATES, outputs(self.model))

  @functools.cached_property
  def kernel(self) -> Simulation:
    return Simulation(self.model, NUM_STATES, self.device, threads=1, outputs=outputs(self.model))


# One process makes the states and the kernel of a case, and all its tests.
@pytest.fixture(scope="module", params=grouped(CASES))
def case(request, device):
  return Case(request.param, device)
