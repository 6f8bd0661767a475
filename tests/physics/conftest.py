"""The models that the engine is compared on, with states and MuJoCo's answers, made once per module."""

import dataclasses
import functools
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from physics.layout import Layout
from physics.load import load_model
from physics.model import Model
from physics.parity import Dynamics, States, one_ulp_effect, random_states, reference
from physics.simulation import Simulation

ROOT = Path(__file__).parents[2]
GYMNASIUM = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
NAMES = "ant hopper walker2d_v5 half_cheetah inverted_pendulum inverted_double_pendulum humanoid".split()  # noqa: SIM905
CASES = {
  **{f"gymnasium/{name}": GYMNASIUM / f"{name}.xml" for name in NAMES},
  **{f"assets/{path.parent.name}": path for path in sorted(ROOT.glob("assets/*/robot.xml"))},
  **{path.stem: path for path in sorted(ROOT.glob("tests/models/*.xml"))},
}
NUM_STATES = 256
COMPARED = ("qM", "qfrc_bias", "qacc_smooth", "qacc")
OUTPUTS = (*COMPARED, "xpos", "xquat", "cfrc_ext", "contact_count", "overflow", "solver_niter")


def load(name: str) -> Model:
  """Load a model by its name in CASES, integrated by Euler's method."""
  with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="the file asks for the PGS solver")
    return load_model(CASES[name], integrator="Euler")


@dataclasses.dataclass(frozen=True)
class Case:
  """A model with states, what MuJoCo makes of them, and what one ulp changes in that."""

  name: str
  model: Model

  @property
  def is_robot(self) -> bool:
    """Return whether the model is one to train on, rather than difficult on purpose."""
    return "/" in self.name and not self.name.endswith("humanoid")

  @functools.cached_property
  def states(self) -> States:
    return random_states(self.model, NUM_STATES)

  @functools.cached_property
  def expected(self) -> Dynamics:
    return reference(self.model, self.states)

  @functools.cached_property
  def rounding(self) -> Dynamics:
    return one_ulp_effect(self.model, self.states)

  @functools.cached_property
  def simulation(self) -> Simulation:
    return Simulation(self.model, NUM_STATES, threads=1, outputs=OUTPUTS)

  def start(self) -> Simulation:
    """Return the simulation at the states, with a cold start."""
    simulation = self.simulation
    simulation.reset()
    for name in ("qpos", "qvel", "ctrl"):
      getattr(simulation, name)[:] = torch.from_numpy(getattr(self.states, name))
    return simulation

  @functools.cached_property
  def layout(self) -> Layout:
    return Layout(self.model, OUTPUTS)

  def memory(self) -> np.ndarray:
    """Return float64 state memory [rows, num_states] at the states, with a cold start."""
    memory = np.zeros((self.layout.rows, NUM_STATES))
    for name, value in (
      ("qpos", self.states.qpos),
      ("qvel", self.states.qvel),
      ("mask", np.ones((NUM_STATES, 1))),
    ):
      start = self.layout.blocks[name].start
      memory[start : start + value.shape[1]] = value.T
    return memory

  def field(self, memory: np.ndarray, name: str) -> np.ndarray:
    """Return a field [num_states, ...] of such memory."""
    block = self.layout.blocks[name]
    return memory[block.start : block.start + block.rows].T.reshape(NUM_STATES, *block.shape)


@pytest.fixture(scope="module", params=CASES)
def case(request):
  return Case(request.param, load(request.param))
