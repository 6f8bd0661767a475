"""Models and states at the edge: no crash, no hang, finite or told, and nobody else's environment."""

import math

import numpy as np
import pytest
import torch

from physics import Simulation, load_model
from physics.parity import random_states
from tests.physics.conftest import load

FLOOR = '<geom type="plane" size="0 0 1"/>'


def world(content):
  return f"<mujoco><worldbody>{content}</worldbody></mujoco>"


def stepped(xml, steps=50, num_envs=1, **state):
  """Return a simulation after some steps from the model's defaults, parts of the state set."""
  sim = Simulation(load_model(xml), num_envs, threads=1)
  for name, values in state.items():
    getattr(sim, name)[:] = torch.tensor(values)
  sim.step(steps)
  return sim


def assert_finite_or_told(sim):
  finite = sim.qpos.isfinite().all(1) & sim.qvel.isfinite().all(1)
  assert (finite | (sim.diverged > 0)).all()


@pytest.mark.parametrize(
  "content",
  ["", FLOOR, '<body><geom size="0.1"/></body><body pos="1 0 0"><body/></body><site/><camera/>'],
)
def test_models_in_which_nothing_moves(content):
  sim = stepped(world(content), num_envs=3)
  assert sim.qpos.shape == sim.qvel.shape == (3, 0)
  assert sim.xpos.isfinite().all()
  sim.set_state(sim.get_state())
  sim.reset(torch.tensor([True, False, True]))
  sim.forward()


JOINTS = ("hinge", "slide", "ball", "free")


def bodies(inertial, joints=JOINTS):
  """Return a world of bodies that each have a joint and an inertia, beside a usual one."""
  each = """<body pos="{} 1 0.1"><joint type="{}"/><inertial pos="0 0 0" {}/><geom size="0.1"/></body>"""
  unusual = "".join(each.format(place, joint, inertial) for place, joint in enumerate(joints))
  return world(f'{FLOOR}{unusual}<body pos="1 0 0.1"><freejoint/><geom size="0.1"/></body>')


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("inertial", ['mass="0" diaginertia="0 0 0"', 'mass="1" diaginertia="0 0 0"'])
def test_zero_masses_and_inertias_are_refused(joint, inertial):
  with pytest.raises(ValueError, match="mass and inertia"):
    load_model(bodies(inertial, [joint]))


@pytest.mark.parametrize(
  "inertial", ['mass="1e-9" diaginertia="1e-12 1e-12 1e-12"', 'mass="1" diaginertia="1 1 1e-7"']
)
def test_vanishing_masses_and_inertias_stay_finite(inertial):
  assert stepped(bodies(inertial)).qpos.isfinite().all()


def test_inertia_that_float32_cannot_tell_from_zero_is_finite_or_told():
  assert_finite_or_told(stepped(bodies('mass="1" diaginertia="1 1 1e-14"'), steps=1))


def test_bodies_a_metre_inside_the_floor_come_out():
  shapes = ('type="sphere" size="0.1"', 'type="capsule" size="0.1 0.2"', 'type="box" size="0.1 0.2 0.1"')
  body = '<body pos="{} 0 -1"><freejoint/><geom {} contype="0"/></body>'
  sim = Simulation(load_model(world(FLOOR + "".join(map(body.format, (0, 5, 10), shapes)))), 1, threads=1)
  heights = []
  for _ in range(200):
    sim.step(5)
    assert sim.qpos.isfinite().all()
    heights.append(sim.qpos[0, 2::7].numpy().copy())
  assert (np.max(heights, axis=0) > 0).all()
  assert np.abs(heights).max() < 100


@pytest.mark.parametrize("name", ["assets/ant", "ball_limit"])
def test_joint_speeds_of_ten_thousand_stay_where_they_are(name):
  """What cannot be followed may become infinite, in its own environment; the others keep their bits."""
  model = load(name)
  states = random_states(model, 32)
  calm = Simulation(model, 32, threads=1)
  states.write_to(calm)
  wild = Simulation(model, 32, threads=1)
  states.write_to(wild)
  wild.qvel[::2] = 1e4 * torch.sign(wild.qvel[::2])
  for sim in (calm, wild):
    sim.step(20)
  assert_finite_or_told(wild)
  assert wild.qpos[1::2].equal(calm.qpos[1::2])
  assert wild.qvel[1::2].equal(calm.qvel[1::2])
  wild.reset()
  fresh = Simulation(model, 32, threads=1)
  for sim in (fresh, wild):
    sim.step(5)
  assert wild.get_state().equal(fresh.get_state())


POISONS = [
  (field, poison)
  for field in ("qpos", "qvel", "ctrl", "qacc_warmstart")
  for poison in (math.nan, math.inf, 1e30)
]


def test_what_is_not_finite_stays_in_its_environment_and_is_seen():
  model = load("assets/ant")
  states = random_states(model, 32)
  clean, sick = Simulation(model, 32, threads=1), Simulation(model, 32, threads=1)
  for sim in (clean, sick):
    states.write_to(sim)
  for env, (field, poison) in enumerate(POISONS, start=7):
    getattr(sick, field)[env, -1] = poison
  for sim in (clean, sick):
    sim.step(4)
  assert_finite_or_told(sick)
  others = (torch.arange(32) < 7) | (torch.arange(32) >= 7 + len(POISONS))
  for name in ("qpos", "qvel", "qacc", "xpos", "cfrc_ext", "contact_count"):
    assert getattr(sick, name)[others].equal(getattr(clean, name)[others]), name
  for env, (field, poison) in enumerate(POISONS, start=7):
    is_clipped, is_mended = field == "ctrl" and not math.isnan(poison), field == "qacc_warmstart"
    assert (sick.diverged[env] > 0) == (not is_clipped and not is_mended), (field, poison)
  assert not sick.diverged[others].any()
  sick.reset(~others)
  clean.reset(~others)
  for sim in (clean, sick):
    sim.step(4)
  assert sick.get_state().equal(clean.get_state())
