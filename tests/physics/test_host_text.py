"""The text of a GPU's thread on this machine: the numbers of lanes and NumPy, and memory of its own.

A sanitizer ends the process at an index beyond an array and at a truth value that is none; whatever is on the
stack beforehand, the results have the same bits.
"""

import dataclasses
import functools
import types

import numpy as np
import pytest

import physics
from benchmarks import cases
from benchmarks.physics import models, speed
from physics.parity import NumpySimulation, States, random_states, relative_error
from physics.parity.compare import SINGLE, Trial
from physics.parity.reference import perturbed_states
from physics.state.layout import COUNTERS
from physics.trace.emit_numpy import numpy_function
from physics.trace.trace import Mask, Program, where
from tests.physics.host import Host
from tests.physics.trace.test_emit import INPUTS, PARAMETERS, whole_language

pytestmark = pytest.mark.xdist_group("host text")  # one process compiles the text

ROBOT = "quadruped"  # on rough ground; it has every kind of statement that other robots have
ENVS = 64
LAUNCH = (cases.SUBSTEPS, 0, 1)  # substeps, stride, integrate
DRAWS = 16  # of states moved by one unit in the last place
# Errors of the time steps add up; two that float32 rounds part twice as far as one of them from float64.
OF_ONE_STEP = {name: getattr(SINGLE, name) for name in ("smooth", "solved", "median")}
ROUNDED = dataclasses.replace(SINGLE, **{name: cases.SUBSTEPS * x for name, x in OF_ONE_STEP.items()})
BOTH_ROUNDED = dataclasses.replace(ROUNDED, rounding=2 * SINGLE.rounding)
POISON = (0x7F, 0xFF)  # 3.4e38 and 2,139,062,143; what is not a number and -1


class Situation(Trial):
  """A robot in the midst of its benchmark, and one launch from there, run in three ways.

  Bounds are those of a kernel beside MuJoCo C, whose place NumPy takes in float64. A contact's force does not
  begin at zero: at the surface already it damps what comes nearer. Where a distance is less than positions in
  float32 can tell, rounding decides whether there is a contact in this time step, and what follows shows it:
  of 512 quadrupeds on a height field one ended up elsewhere by 1.7e-4, its foot 10 nm from a second cell. So
  did float64 in half of the draws that moved that state by one unit in the last place: hence `rounding`.
  """

  def __init__(self, folder):
    case = next(case for case in cases.PHYSICS if case.robot == ROBOT)
    self.sim = physics.Simulation(models.load(ROBOT), ENVS, threads=1)
    start = speed.find_situation(dataclasses.replace(case, num_envs=ENVS), self.sim)
    self.sim.ctrl.copy_(start.controls[0])
    names = [field.name for field in dataclasses.fields(States) if hasattr(self.sim, field.name)]
    states = States(**{name: getattr(self.sim, name).double().numpy() for name in names})
    super().__init__(self.sim.model, states)
    self.arrays = [x.numpy().copy() for x in (self.sim._memory, self.sim._controls, self.sim._parameters)]
    self.host = Host(self.sim.program, folder)

  @functools.cached_property
  def text(self):
    return self.fields(self.host.run(LAUNCH, self.arrays))

  @functools.cached_property
  def lanes(self):
    self.sim.step(cases.SUBSTEPS)
    return self.fields(self.sim._memory.numpy())

  @functools.cached_property
  def draws(self):
    """What NumPy makes of the states, then of the same moved, by field [1 + DRAWS, env, rows]."""
    random = np.random.default_rng(0)
    moved = [perturbed_states(self.model, self.states, random) for _ in range(DRAWS)]
    parts = {name: [getattr(draw, name) for draw in moved] for name, _ in self.states.parts()}
    everything = States(**{n: np.concatenate([getattr(self.states, n), *v]) for n, v in parts.items()})
    oracle = NumpySimulation(self.model, len(everything), self.sim.layout.outputs)
    everything.write_to(oracle)
    oracle.step(cases.SUBSTEPS)
    return {name: x.reshape(1 + DRAWS, ENVS, -1) for name, x in self.fields(oracle._memory).items()}

  @property
  def expected(self):
    return {name: values[0] for name, values in self.draws.items()}

  def rounding(self, dtype):  # noqa: ARG002 (always float32)
    """Return by field what one unit in the last place changes, per environment."""
    effects = {
      name: np.max([relative_error(x, values[0]) for x in values[1:]], axis=0)
      for name, values in self.draws.items()
    }
    return types.SimpleNamespace(**effects)

  def fields(self, memory):
    """Return the fields [env, rows] of a memory [row, env], in float64."""
    fields = {}
    for name, block in self.sim.layout.blocks.items():
      rows = memory[block.start : block.start + block.rows]
      if name in COUNTERS and memory.dtype == np.float32:
        rows = rows.view(np.int32)
      fields[name] = rows.T.astype(float)
    return fields

  def differences(self, expected, tolerances):
    """Return which of the text's fields differ by more than rounding explains."""
    names = [name for name, values in expected.items() if values.size and name not in COUNTERS]
    errors = {name: relative_error(self.text[name], expected[name]) for name in names}
    findings = [self._finding(name, error, tolerances) for name, error in errors.items()]
    return [str(finding) for finding in findings if not finding.holds]

  def odd_arrays(self):
    """Return arrays of states beyond limits, with everything in one place, far too fast, not even numbers."""
    memory, control, parameters = (array.copy() for array in self.arrays)
    random, states = np.random.default_rng(0), random_states(self.model, ENVS)
    for name, values in states.parts():
      if name in self.sim.layout:
        block = self.sim.layout.blocks[name]
        memory[block.start : block.start + block.rows] = values.reshape(ENVS, -1).T
    control[: self.model.nu] = states.ctrl.T
    state = memory[: self.sim.layout.state_rows]
    state[:, 1::4] *= 0.1
    state[self.model.nq : self.model.nq + self.model.nv, 2::4] *= 1e4
    odd = random.choice([np.nan, np.inf, 1e20, 0.0], size=state.shape)
    state[:, 3::4] = np.where(random.uniform(size=state.shape) < 0.05, odd, state)[:, 3::4]
    return memory, control, parameters


@pytest.fixture(scope="module")
def situation(tmp_path_factory):
  return Situation(tmp_path_factory.mktemp(ROBOT))


def test_the_text_computes_what_numpy_does(situation):
  assert situation.differences(situation.expected, ROUNDED) == []
  counts = situation.draws["contact_count"]
  assert (situation.text["contact_count"] == counts).any(axis=0).all(), "as many as some rounding finds"
  assert (counts[0] > 0).mean() > 0.1, "some have contacts, or nothing is seen of them"
  assert not situation.text["overflow"].any()
  assert not situation.text["diverged"].any()


def test_the_text_computes_what_the_lanes_do(situation):
  assert situation.differences(situation.lanes, BOTH_ROUNDED) == []


def test_threads_in_step_with_one_that_is_never_done_compute_the_same_bits(situation, tmp_path):
  in_step = Host(situation.sim.program, tmp_path, in_step=True)
  found, expected = (host.run(LAUNCH, situation.arrays) for host in (in_step, situation.host))
  np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))


def assert_own_memory(host, parameters, arrays):
  """Run under the sanitizers, whatever is on the stack beforehand, and assert that the bits stay the same."""
  clean = host.run(parameters, arrays)
  for byte in POISON:
    np.testing.assert_array_equal(host.run(parameters, arrays, byte).view(np.int32), clean.view(np.int32))


def test_the_text_reads_and_writes_its_own_memory_alone(situation):
  """In states that nobody meant, too."""
  for arrays in (situation.arrays, situation.odd_arrays()):
    assert_own_memory(situation.host, LAUNCH, arrays)


def test_every_statement_keeps_to_its_own_memory(tmp_path):
  program, rows = whole_language()
  control = np.random.default_rng(1).uniform(-1, 1, (INPUTS, ENVS)).astype(np.float32)
  arrays, parameters = (np.zeros((rows, ENVS)), control, control), list(PARAMETERS.values())
  host = Host(program, tmp_path)
  assert_own_memory(host, parameters, arrays)
  expected = np.zeros((rows, ENVS))
  numpy_function(program)(*parameters, control=control.astype(float), state=expected)
  np.testing.assert_allclose(host.run(parameters, arrays)[:-1], expected[:-1], rtol=0, atol=2e-5)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
  """A program that sets three of four elements and reads the one that its parameter `substeps` names."""
  program = Program()
  substeps = program.parameter("substeps")
  program.parameter("stride")
  integrate = program.parameter("integrate")
  numbers, truths = program.array(4), program.array(4, Mask)
  for i in range(3):
    numbers[i], truths[i] = program.read_memory("control", i), True
  program.write_memory("state", 0, numbers[substeps])
  with program.when_less(0, integrate):
    program.write_memory("state", integrate, where(truths[substeps], 2.0, 1.0))
  return Host(program.finish(), tmp_path_factory.mktemp("faulty"))


ARRAYS = (np.zeros((2, 3)), np.ones((3, 3)), np.zeros((1, 3)))


def test_what_is_set_is_read(faulty):
  assert_own_memory(faulty, (2, 0, 1), ARRAYS)
  np.testing.assert_array_equal(faulty.run((2, 0, 1), ARRAYS), [[1.0] * 3, [2.0] * 3])


def test_the_stack_shows_a_number_that_was_never_set(faulty):
  with pytest.raises(AssertionError, match="Mismatched elements: 3 / 6"):
    assert_own_memory(faulty, (3, 0, 0), ARRAYS)


@pytest.mark.parametrize(
  ("parameters", "report"),
  [
    ((3, 0, 1), "load of value 255, which is not a valid value for type 'bool'"),
    ((4, 0, 0), "index 4 out of bounds"),
    ((-1, 0, 0), "index -1 out of bounds"),
    ((2, 0, 2), "heap-buffer-overflow"),
  ],
)
def test_a_sanitizer_ends_what_leaves_its_memory(faulty, parameters, report):
  with pytest.raises(AssertionError, match=report):
    faulty.run(parameters, ARRAYS, byte=0xFF)
