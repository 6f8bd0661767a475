"""Simulation: memory, masks, states, controls per substep, and bits that depend on nothing but the state."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from physics import DEFAULT_OUTPUTS, Simulation, load_model
from physics.model.model import Model
from physics.parity import random_states
from physics.state.delay import past_rows, past_sensor_rows, periodic_sensors
from physics.state.layout import COUNTERS, STATE, field_shapes, time_rows
from physics.trace.launcher import Launcher
from physics.vary.variable import VARIABLE
from tests.physics.conftest import CASES, load
from tests.physics.declared import declared

INPUTS = ("qpos", "qvel", "ctrl", "qacc_warmstart")
VIEWS = declared(Simulation)
pytestmark = pytest.mark.xdist_group("simulation")  # one process builds the kernels


@pytest.fixture(scope="module", params=["assets/ant", "self_contact", "actuators"])
def model(request):
  return load(request.param)


def started(model, num_envs, threads=1, order=None, **options):
  """Return a simulation at the first random states, in the given order."""
  simulation = Simulation(model, num_envs, threads=threads, **options)
  states = random_states(model, num_envs)
  for name in ("qpos", "qvel", "ctrl"):
    values = torch.from_numpy(getattr(states, name))
    getattr(simulation, name)[:] = values if order is None else values[order]
  return simulation


def fields(simulation):
  """Return copies of all inputs and default outputs by name."""
  return {name: getattr(simulation, name).clone() for name in (*INPUTS, *DEFAULT_OUTPUTS)}


def assert_same_bits(found, expected):
  for name, value in expected.items():
    assert found[name].equal(value), name


def public_tensors(simulation):
  """Return the views of a simulation by name."""
  found = {name: value for name, value in vars(simulation).items() if not name.startswith("_")}
  return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def test_views_are_never_rebound(model):
  simulation = Simulation(model, 5)
  views = public_tensors(simulation)
  simulation.step(2)
  simulation.forward()
  simulation.reset()
  simulation.set_state(simulation.get_state())
  assert views.keys() >= {"qpos", "qvel", "ctrl", *DEFAULT_OUTPUTS}
  assert all(getattr(simulation, name) is view for name, view in views.items())
  assert (simulation.num_envs, simulation.device, simulation.model) == (5, torch.device("cpu"), model)


def declared_shapes(model, num_envs):
  """Return the shapes of all views by name, as `Simulation` declares them."""
  sizes = SimpleNamespace(**{size: getattr(model.mj, size) for size in dir(model.mj) if size.startswith("n")})
  sizes.num_envs = num_envs
  for rows in (past_rows, past_sensor_rows, time_rows):
    setattr(sizes, rows.__name__, rows(model))
  sizes.wait_rows = len(periodic_sensors(model))
  return {name: view.shape_in(sizes) for name, view in VIEWS.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_view_is_declared_with_its_shape(name):
  model = load(name)
  shapes = (
    field_shapes(model) | {"ctrl": (model.nu,)} | {name: getattr(model, name).shape for name in VARIABLE}
  )
  del shapes["mask"]
  assert declared_shapes(model, 5) == {name: (5, *shape) for name, shape in shapes.items()}


def test_a_simulation_has_the_views_that_are_declared():
  model = load_model(CASES["mocap"], vary=VARIABLE)
  simulation = Simulation(
    model, 5, outputs=[name for name in VIEWS if name not in (*STATE, *VARIABLE, "ctrl")]
  )
  views = public_tensors(simulation)
  assert {name: view.shape for name, view in views.items()} == declared_shapes(model, 5)
  for name, view in views.items():
    assert view.dtype == (torch.int32 if "int32" in VIEWS[name].text else torch.float32), name


def test_a_varied_view_is_declared_as_the_models_field_is():
  fields = declared(Model)
  for name in VARIABLE:
    assert VIEWS[name].shape == ("num_envs", *fields[name].shape), name
    assert VIEWS[name].unit == fields[name].unit, name


def test_every_view_but_counters_has_a_unit():
  assert {name for name, view in VIEWS.items() if view.unit is None} == set(COUNTERS)


def test_starts_at_the_models_defaults(model):
  simulation = Simulation(model, 3)
  assert simulation.qpos.equal(torch.tensor(model.qpos0, dtype=torch.float32).expand(3, -1))
  assert not any(getattr(simulation, name).any() for name in INPUTS[1:])


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_bits(model, threads):
  one, several = started(model, 70), started(model, 70, threads)
  assert (one.threads, several.threads) == (1, threads)
  for simulation in (one, several):
    simulation.step(5)
  assert_same_bits(fields(several), fields(one))


def test_order_and_neighbours_do_not_change_bits(model):
  order = torch.randperm(70, generator=torch.Generator().manual_seed(0))
  plain, permuted = started(model, 70), started(model, 70, order=order)
  for simulation in (plain, permuted):
    simulation.step(5)
  assert_same_bits(fields(permuted), {name: value[order] for name, value in fields(plain).items()})


@pytest.mark.parametrize("num_envs", [1, 7, 16, 33])
def test_number_of_environments_does_not_change_bits(model, num_envs):
  many, few = started(model, 70), started(model, num_envs)
  for simulation in (many, few):
    simulation.step(5)
  assert_same_bits(fields(few), {name: value[:num_envs] for name, value in fields(many).items()})


def test_substeps_in_one_launch_are_steps_in_many(model):
  together, apart = started(model, 20), started(model, 20)
  together.step(6)
  for _ in range(6):
    apart.step()
  expected = fields(apart) | {"overflow": together.overflow}  # counted over the substeps of a launch
  assert_same_bits(fields(together), expected)


def test_controls_of_a_step_follow_the_substeps(model):
  twice = torch.randn(2, 20, 4, model.nu, generator=torch.Generator().manual_seed(0))
  together, apart = started(model, 20), started(model, 20)
  for controls in twice:
    together.step(4, controls)
    for substep in range(4):
      apart.ctrl[:] = controls[:, substep]
      apart.step()
    assert_same_bits(fields(together), fields(apart) | {"overflow": together.overflow})


def test_a_step_is_recorded_once(model, monkeypatch):
  simulation = started(model, 20)
  controls = torch.zeros(20, 4, model.nu)
  simulation.step(4, controls)
  simulation.step(4)
  size = simulation.bytes_per_env
  monkeypatch.setattr(Launcher, "record", None)
  simulation.step(4, controls)
  simulation.step(4)
  assert simulation.bytes_per_env == size


def test_a_launch_is_an_operation_of_torch_on_the_memory_it_uses(model):
  """Repeated by who has recorded it, it simulates on."""
  simulation, other = started(model, 20), started(model, 20)
  operations: list[tuple[str, list[torch.Tensor]]] = []

  class Recorder(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
      operations.append((func, args))
      return func(*args, **(kwargs or {}))

  with Recorder():
    simulation.step(3)
  ((launch, (memory, number)),) = operations
  assert str(launch) == "physics.launch.default"
  addresses = {tensor.untyped_storage().data_ptr() for tensor in memory}
  assert {view.untyped_storage().data_ptr() for view in (simulation.qpos, simulation.ctrl)} <= addresses
  launch(memory, number)
  other.step(3)
  other.step(3)
  assert_same_bits(fields(simulation), fields(other))


def test_reset_touches_the_masked_environments_alone(model):
  simulation = started(model, 20)
  simulation.step(3)
  before, mask = fields(simulation), torch.arange(20) % 3 == 0
  simulation.reset(mask)
  fresh = fields(Simulation(model, 20))
  for name in INPUTS:
    found = getattr(simulation, name)
    assert found[mask].equal(fresh[name][mask]), name
    assert found[~mask].equal(before[name][~mask]), name
  simulation.reset()
  assert_same_bits(
    {name: getattr(simulation, name) for name in INPUTS}, {name: fresh[name] for name in INPUTS}
  )


def test_forward_moves_no_time_and_obeys_the_mask(model):
  simulation = started(model, 20)
  simulation.step(2)
  before, mask = fields(simulation), torch.arange(20) < 9
  everywhere = started(model, 20)
  everywhere.set_state(simulation.get_state())
  everywhere.forward()
  simulation.forward(mask)
  for name in INPUTS:
    assert getattr(simulation, name).equal(before[name]), name
    assert getattr(everywhere, name).equal(before[name]), name
  for name in DEFAULT_OUTPUTS:
    found = getattr(simulation, name)
    assert found[mask].equal(getattr(everywhere, name)[mask]), name
    assert found[~mask].equal(before[name][~mask]), name
  assert not simulation.xpos[mask].equal(before["xpos"][mask])


def test_state_is_everything_the_future_depends_on(model):
  simulation = started(model, 20)
  simulation.step(3)
  state = simulation.get_state()
  simulation.step(4)
  expected = fields(simulation)
  simulation.reset()
  simulation.step(7)
  simulation.set_state(state)
  simulation.step(4)
  assert_same_bits(fields(simulation), expected)
  other = Simulation(model, 20)
  other.set_state(state)
  other.step(4)
  assert_same_bits(fields(other), expected)


def test_outputs_are_of_the_last_substeps_start(model):
  simulation = started(model, 20)
  simulation.step(3)
  twice = started(model, 20)
  twice.step(2)
  twice.forward()
  for name in ("xpos", "xquat"):
    assert getattr(twice, name).equal(getattr(simulation, name)), name


def test_counts_contacts_that_do_not_fit():
  model = load("self_contact")
  roomy, tight = started(model, 64), started(model, 64, moving_capacity=1)
  for simulation in (roomy, tight):
    simulation.forward()
  assert roomy.overflow.max() == 0
  assert tight.overflow.max() > 0
  assert (tight.contact_count + tight.overflow).equal(roomy.contact_count)
  fits = tight.overflow == 0
  assert 0 < fits.sum() < 64
  # two kernels: the compiler rounds differently in each
  np.testing.assert_allclose(tight.qacc[fits], roomy.qacc[fits], rtol=1e-5, atol=1e-3)
  steps = started(model, 64, moving_capacity=1)
  steps.step(3)
  once = started(model, 64, moving_capacity=1)
  total = torch.zeros_like(once.overflow)
  for _ in range(3):
    once.step()
    total += once.overflow
  assert steps.overflow.equal(total)


def test_infinite_and_huge_limits_compile():
  """The compiler of C++ knows no text for infinity; numbers beyond float32 are clipped to its largest."""
  model = load_model("""
    <mujoco><option integrator="Euler"/><worldbody><body>
      <joint name="hinge" axis="0 1 0" frictionloss="1e39"/><geom size="0.1" pos="0.2 0 0" mass="1"/>
    </body></worldbody>
    <actuator><motor joint="hinge" ctrllimited="true" ctrlrange="-1 inf"/></actuator></mujoco>""")
  simulation = Simulation(model, 1)
  simulation.ctrl[:] = 5.0
  simulation.step(10)
  assert (
    simulation.qvel.abs().max() < 0.5
  )  # friction, soft as it is, holds it: the motor alone would reach 2.5


@pytest.fixture(scope="module")
def small():
  return Simulation(load("self_contact"), 3, threads=2)


def test_it_says_how_large_an_environment_is(small):
  others = 3  # the mask, and a row of controls and one of parameters, though it has none
  rows = others + sum(values[0].numel() for values in fields(small).values())
  assert small.bytes_per_env == 4 * rows
  assert repr(small) == f"Simulation(3 environments of {4 * rows} bytes each, 2 threads)"


@pytest.mark.parametrize(
  "mask",
  [torch.tensor([1, 0, 1]), torch.tensor([0, 2]), torch.tensor([True]), torch.ones(3, 1, dtype=torch.bool)],
)
def test_what_is_no_mask_is_refused(small, mask):
  """Indices of environments, as other simulators take them, would reset others or none."""
  for call in (small.reset, small.forward):
    with pytest.raises(ValueError, match=r"mask is torch\..* expected torch.bool of shape \(3,\)"):
      call(mask)


def test_other_sizes_are_refused(small):
  for count in (0, -1, 2.5, "many"):
    with pytest.raises(ValueError, match=r"num_envs=.*: write a number of environments, 1 or more"):
      Simulation(small.model, count)
  with pytest.raises(ValueError, match=r"state has shape \(5,\), expected \(\d+, 3\)"):
    small.set_state(torch.zeros(5))
  with pytest.raises(ValueError, match="ctrl has shape"):
    small.step(2, torch.zeros(3, 3, small.model.nu))
