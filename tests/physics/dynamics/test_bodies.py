"""Programs that repeat: loops over bodies compute what MuJoCo C does, and their text does not grow."""

import numpy as np
import pytest

from benchmarks.physics import models
from physics.dynamics.bodies import LONG, bodies, is_long, leaves_first
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.compare import DOUBLE, Trial, outputs
from physics.parity.reference import converged
from physics.parity.states import recorded_states
from physics.simulation import Simulation
from physics.state.layout import DEFAULT_OUTPUTS, Layout
from physics.step import trace_step
from physics.trace.emit import native_source
from tests.instances import grouped
from tests.physics.conftest import CASES, load
from tests.physics.host import Host

NUM_STATES = 4
# Together they trace all lines that programs which repeat reach in the models of test_parity.py.
MODELS = (
  "adhesion",
  "convex",
  "cranks",
  "drives",
  "ellipsoids",
  "equalities",
  "gymnasium/humanoid",
  "height_field",
  "muscles",
  "noslip_elliptic",
  "plastic",
  "sensors",
  "solids",
  "spatial_tendons",
  "sticky",
)
CAPSULE = '<body pos="{} 0 0.1"><freejoint/><geom type="capsule" size="0.05 0.1"/></body>'


def capsules(count):
  text = "".join(CAPSULE.format(0.15 * i) for i in range(count))
  return load_model(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{text}</worldbody></mujoco>')


def chain(links, **options):
  return load_model(models.chain(links), **options)


@pytest.fixture
def loops(monkeypatch):
  """Let the program of every model repeat."""
  monkeypatch.setattr("physics.dynamics.bodies.LONG", 0)
  monkeypatch.setattr("physics.trace.each.FEWEST", 2)


def assert_agrees(model):
  simulation = NumpySimulation(model, NUM_STATES, outputs(model))
  random, recorded = Trial(model, random_states(model, NUM_STATES)), recorded_states(model, NUM_STATES, 12)
  findings = random.stages(simulation, DOUBLE) + random.step(simulation, DOUBLE)
  findings += Trial(model, recorded).step(simulation, DOUBLE)
  assert [str(finding) for finding in findings if not finding.holds] == []


@pytest.mark.parametrize("name", grouped(MODELS))
@pytest.mark.usefixtures("loops")
def test_loops_compute_what_mujoco_does(name):
  assert_agrees(converged(load(name)))


def test_a_long_chain_is_mujocos():
  assert_agrees(chain(LONG + 10))


def test_more_free_bodies_than_a_word_has_bits_are_mujocos(monkeypatch):
  monkeypatch.setattr("physics.dynamics.bodies.LONG", 30)
  assert_agrees(capsules(33))


@pytest.mark.parametrize("build", [chain, capsules])
def test_text_grows_by_tables_alone(build):
  counts, sizes = [], []
  for number in (LONG + 10, 2 * LONG + 20):
    model = build(number)
    program = trace_step(model, Layout(model, DEFAULT_OUTPUTS))
    counts.append(program.count_operations())
    sizes.append(len(native_source(program, 16)) / number)
  assert counts[1] <= 1.05 * counts[0]
  assert sizes[1] < 1.1 * sizes[0] or build is capsules  # any two of these may touch: n^2 rows of tables


@pytest.mark.usefixtures("loops")
def test_a_gpus_thread_computes_what_lanes_do(tmp_path):
  model = load_model(CASES["self_contact"])  # traced anew, as it repeats here
  sim = Simulation(model, 16, threads=1)
  states = random_states(model, 16)
  states.write_to(sim)
  arrays = [x.numpy().copy() for x in (sim._memory, sim._controls, sim._parameters)]
  memory = Host(sim.program, tmp_path).run((1, 0, 1), arrays)
  sim.step()
  rows = slice(sim.layout.blocks["qpos"].start, sim.layout.blocks["qpos"].start + model.nq)
  np.testing.assert_allclose(memory[rows, :16], sim._memory.numpy()[rows, :16], atol=1e-5)


def test_masses_of_a_long_chain_can_vary():
  usual, varied = chain(LONG + 5), chain(LONG + 5, vary=["body_mass", "dof_damping"])
  found = []
  for model in (usual, varied):
    simulation = NumpySimulation(model, 2, ("qacc",))
    random_states(usual, 2).write_to(simulation)
    simulation.forward()
    found.append(np.array(simulation.qacc))
  np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_bodies_come_after_their_parents_and_leaves_first():
  model = load("assets/hand")
  assert list(bodies(model, None)) == list(range(1, model.nbody))
  assert list(leaves_first(model, None)) == list(range(model.nbody - 1, 0, -1))


def test_no_robot_here_repeats():
  assert not any(is_long(load(name)) for name in CASES if name.startswith("assets/"))
