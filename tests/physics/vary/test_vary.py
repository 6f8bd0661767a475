"""Varied fields: every environment against MuJoCo's own model with those numbers, all constants set anew."""

import copy
import inspect

import mujoco
import numpy as np
import pytest
import torch

from physics.load import load_model
from physics.parity import converging
from physics.simulation import Simulation, start_values
from physics.solver import newton
from physics.state.layout import Layout
from physics.step import trace_step
from physics.trace.emit_numpy import numpy_function
from physics.vary.vary import Variation
from tests.physics.conftest import CASES

ENVS = 6
COMPARED = ("qacc", "sensordata")
GROUPS = {
  "gravity": ["gravity"],
  "inertia": ["body_mass", "body_inertia", "body_ipos", "dof_armature", "tendon_armature"],
  "friction": ["geom_friction"],
  "sizes": ["geom_size"],
  "softness": ["geom_solref", "geom_solimp"],
  "limits": ["jnt_range", "jnt_solref", "jnt_solimp"],
  "springs": ["jnt_stiffness", "dof_damping"],
  "friction loss": ["dof_frictionloss", "dof_solref"],
  "actuators": ["actuator_gainprm", "actuator_biasprm", "actuator_ctrlrange", "actuator_forcerange"],
}
OTHERS = {
  "pairs": ["pair_friction", "pair_solref", "pair_solimp"],
  "surfaces": ["geom_surfacevel", "geom_size"],
  "equalities": ["eq_data", "eq_solref", "eq_solimp"],
  "strength": ["body_mass", "dof_armature"],
}
MODELS = ("gymnasium/humanoid", "actuators", "friction_loss", "springs", "sensors")
GROUPS["all"] = [field for fields in GROUPS.values() for field in fields]
CHOSEN = [(name, "all") for name in MODELS]
CHOSEN += [("actuators", group) for group in ("inertia", "actuators")]
CHOSEN += [("condim", "pairs"), ("elliptic", "pairs"), ("equalities", "equalities")]
CHOSEN += [(name, "inertia") for name in ("equalities", "fluid", "ellipsoids", "tendons", "heavy_tendons")]
CHOSEN += [("muscles", "actuators"), ("muscles", "strength")]
CHOSEN += [("surfaces", "surfaces")]
CHOSEN += [("sticky", group) for group in ("strength", "pairs")]


def mujoco_field(mj, name):
  return mj.opt.gravity if name == "gravity" else getattr(mj, name)


def varied(model, seed=0):
  """Return parameters [rows, env], up to 30 % off the model's, and MuJoCo's models with the same numbers."""
  random, variation = np.random.default_rng(seed), Variation(model)
  parameters, models = np.zeros((max(1, variation.rows), ENVS)), []
  for env in range(ENVS):
    mj = converging(model.mj)
    for name in model.varied:
      own, block = getattr(model, name), variation.blocks[name]
      values = np.float32(own * random.uniform(0.7, 1.3, own.shape)).astype(float)
      if name == "eq_data":
        values[:, [6, 7, 8, 9, 11]] = own[:, [6, 7, 8, 9, 11]]  # a unit quaternion and a switch
      parameters[block.start : block.start + block.rows, env] = values.ravel()
      mujoco_field(mj, name)[..., : own.shape[-1]] = values
      if name.endswith("_armature"):
        mj.actuator_armature[:] = 0.0  # it is part of the model's
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    models.append(mj)
  return variation, parameters, models


def moving_states(models, seed=1):
  """Return MuJoCo's data of each model in a state that it came to."""
  random, states = np.random.default_rng(seed), []
  for mj in models:
    data = mujoco.MjData(mj)
    data.qvel[:] = random.normal(size=mj.nv)
    data.ctrl[:] = random.uniform(-1, 1, mj.nu)
    mujoco.mj_step(mj, data, int(random.integers(1, 120)))
    for part in (data.qpos, data.qvel, data.act, data.ctrl):
      part[:] = part.astype(np.float32)
    mujoco.mj_forward(mj, data)
    states.append(data)
  return states


@pytest.mark.parametrize(("name", "group"), CHOSEN)
def test_every_environment_is_mujocos_model_with_its_numbers(name, group, monkeypatch):
  monkeypatch.setattr(newton, "TOLERANCE", 1e-13)
  model = load_model(CASES[name], integrator="Euler", vary=(GROUPS | OTHERS)[group])
  variation, parameters, models = varied(model)
  if variation.program:
    numpy_function(variation.program)(parameters=parameters)
  states, layout = moving_states(models), Layout(model, COMPARED)
  memory = np.zeros((layout.rows, ENVS))
  memory[: layout.state_rows] = start_values(model)[:, None]
  memory[layout.blocks["mask"].start] = 1.0
  for part in ("time", "qpos", "qvel", "act"):
    block = layout.blocks[part]
    for env, data in enumerate(states):
      memory[block.start : block.start + block.rows, env] = getattr(data, part)
  inputs = {"control": np.array([data.ctrl for data in states]).T.copy()} if model.nu else {}
  run = numpy_function(trace_step(model, layout, variation=variation))
  used = {"parameters": parameters} if "parameters" in inspect.signature(run).parameters else {}
  with np.errstate(all="ignore"):
    run(1, 0, 0, state=memory, **inputs, **used)
  for field in COMPARED:
    block = layout.blocks[field]
    for env, data in enumerate(states):
      found, expected = memory[block.start : block.start + block.rows, env], getattr(data, field)
      scale = max(1.0, np.abs(expected).max(initial=0.0))
      np.testing.assert_allclose(found / scale, expected / scale, atol=1e-9)


@pytest.fixture(scope="module")
def simulation():
  model = load_model(CASES["self_contact"], vary=["body_mass", "geom_friction"])
  return Simulation(model, ENVS, threads=1)


def test_views_begin_with_the_models_numbers_and_what_follows_follows_them(simulation):
  model = simulation.model
  assert simulation.body_mass.shape == (ENVS, model.nbody)
  assert simulation.geom_friction.shape == (ENVS, model.ngeom, 3)
  np.testing.assert_allclose(simulation.geom_friction[2], model.geom_friction, rtol=1e-6)
  simulation.body_mass[1] *= 2.0
  simulation.geom_friction[1] *= 0.5
  simulation.forward()
  heavy = copy.copy(model.mj)
  heavy.body_mass[:] *= 2.0
  heavy.geom_friction[:] *= 0.5
  mujoco.mj_setConst(heavy, mujoco.MjData(heavy))
  for env, mj in ((0, model.mj), (1, heavy)):
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    scale = np.abs(data.qacc).max()
    np.testing.assert_allclose(simulation.qacc[env].numpy() / scale, data.qacc / scale, atol=1e-4)


def test_the_state_holds_the_parameters_and_a_reset_leaves_them(simulation):
  simulation.body_mass[3] *= 1.5
  simulation.step(3)
  saved, mass = simulation.get_state(), simulation.body_mass.clone()
  simulation.reset()
  torch.testing.assert_close(simulation.body_mass, mass, rtol=0, atol=0)
  simulation.set_state(saved)
  simulation.step(3)
  once = simulation.get_state()
  simulation.body_mass[3] *= 3.0
  simulation.step()
  simulation.set_state(saved)
  simulation.step(3)
  assert simulation.get_state().equal(once)


def test_what_cannot_vary_is_refused_with_the_nearest_that_can():
  with pytest.raises(ValueError, match="'body_masses' cannot vary; the nearest that can is 'body_mass'"):
    load_model(CASES["springs"], vary=["body_masses"])


@pytest.mark.parametrize("behind_torchs_back", [False, True])
def test_what_is_written_is_derived_from_however_it_is_written(behind_torchs_back):
  """By compiled code, or by another library on the same memory, of which torch keeps no count."""
  model = load_model(CASES["self_contact"], vary=["body_mass", "geom_friction"])
  sims = [Simulation(model, ENVS, threads=1) for _ in range(2)]

  def heavier(sim: Simulation) -> None:
    sim.body_mass.mul_(3.0)

  torch._dynamo.reset()
  compiled = torch.compile(heavier, backend="aot_eager", dynamic=False)

  def numpy(sim: Simulation) -> None:
    sim.body_mass.numpy()[:] *= 3.0

  writes = (heavier, numpy if behind_torchs_back else compiled)
  with torch.no_grad():
    for sim, write in zip(sims, writes, strict=True):
      sim.forward()
      before = sim.qacc.clone()
      write(sim)
      sim.forward()
      assert not sim.qacc.equal(before)
  assert sims[0].qacc.equal(sims[1].qacc)


def test_what_was_not_written_is_not_derived_again(simulation):
  """Derived numbers stay where nothing changed; nan, which equals nothing, is no reason to keep old ones."""
  simulation.forward()
  block = simulation.variation.blocks["body_invweight0"]
  derived = simulation._parameters[block.start : block.start + block.rows]
  right = derived.clone()
  derived.fill_(7.0)
  simulation.forward()
  assert (derived == 7.0).all()
  simulation.body_mass[0, 1] = torch.nan
  simulation.forward()
  assert not (derived[:, 1:ENVS] == 7.0).any()  # its neighbours run along
  assert derived[:, 1:ENVS].equal(right[:, 1:ENVS])
