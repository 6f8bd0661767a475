"""The comparison finds what is wrong, names it, and lets rounding pass."""

import dataclasses

import numpy as np
import pytest

from physics.load import load_model
from physics.parity import NumpySimulation, compare, random_states
from physics.parity.compare import DOUBLE, GIVEN, OTHER_CORNERS, SINGLE, STATES_OPEN, Trial, outputs
from physics.parity.reference import converged
from tests.physics.conftest import load
from tests.physics.reports import assert_holds


@pytest.fixture(scope="module")
def model():
  return load("self_contact")


@pytest.fixture(scope="module")
def trial(model):
  return Trial(model, random_states(model, 16))


def failed(findings):
  return [finding.quantity for finding in findings if not finding.holds]


def test_rounding_passes_where_it_should(model, trial):
  single = NumpySimulation(model, 16, outputs(model), np.float32)
  assert failed(trial.contacts(SINGLE) + trial.stages(single, SINGLE) + trial.step(single, SINGLE)) == []
  assert "qfrc_bias" in failed(trial.stages(single, DOUBLE))
  strict = dataclasses.replace(SINGLE, position=1e-9, rounding=0.0)
  assert failed(trial.contacts(strict)) == ["contact position"]


def test_names_the_first_stage_that_is_wrong(model, trial):
  heavier = dataclasses.replace(model, gravity=model.gravity * (1 + 1e-4))
  found = failed(trial.stages(NumpySimulation(heavier, 16, outputs(model)), DOUBLE))
  assert found[0] == "qfrc_bias"
  assert "qacc" in found
  assert "qM" not in found
  looser = dataclasses.replace(model, jnt_range=model.jnt_range * 1.01)
  assert failed(trial.stages(NumpySimulation(looser, 16, outputs(model)), DOUBLE)) == ["qacc", "cfrc_ext"]


def test_what_was_found_stays_when_the_simulation_goes_on(model, trial):
  simulation = NumpySimulation(model, 16, outputs(model))
  simulation.forward = lambda: simulation.overflow.fill_(7.0)
  findings = trial.stages(simulation, DOUBLE)
  simulation.reset()
  assert "overflow" in failed(findings)


def test_finds_a_wrong_step(model, trial):
  longer = dataclasses.replace(model, timestep=model.timestep * 1.001)
  assert failed(trial.step(NumpySimulation(longer, 16, outputs(model)), SINGLE)) == ["next qpos", "next qvel"]


CROSSED = """<mujoco><worldbody><geom type="capsule" size=".1 1" euler="0 90 0"/>
  <body><freejoint/><geom type="capsule" size=".1 1" euler="90 0 0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("gap", "is_open"), [(0.0, False), (1e-8, True), (1e-5, False)])
def test_axes_that_nearly_meet_are_left_open(gap, is_open):
  """Across both axes, with the sign of their cross product: MuJoCo's normal has that of the gap."""
  model = load_model(CROSSED)
  states = random_states(model, 16)
  states.qpos[:8] = [0.0, 0.3, gap, 1, 0, 0, 0]
  states.qpos[8:] = [0.0, 0.3, 0.19, 1, 0, 0, 0]
  trial = Trial(model, states)
  simulation = NumpySimulation(model, 16, outputs(model))
  assert trial.alike(DOUBLE).tolist() == [not is_open] * 8 + [True] * 8
  assert failed(trial.contacts(DOUBLE)) == ["states left open"] * is_open
  assert failed(trial.stages(simulation, DOUBLE)) == []


def prisms(sides):
  """Return two prisms side by side, whose sides are nearly level: many pairs of them are faces that meet."""
  turn = np.linspace(0, 2 * np.pi, sides, endpoint=False)
  corners = [(0.1 * np.cos(a), 0.1 * np.sin(a), z) for a in turn for z in (-0.1, 0.1)]
  mesh = " ".join(f"{x:.6f}" for x in np.ravel(corners))
  return f"""<mujoco><asset><mesh name="m" vertex="{mesh}"/></asset><worldbody>
    <body><joint axis="1 1 0" range="-10 10"/><geom type="mesh" mesh="m"/></body>
    <body pos="0 0.198 0"><joint axis="0 0 1"/><joint axis="1 0 0" range="-5 5"/>
      <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def shares(model):
  return {each.quantity: each.error for each in Trial(model, random_states(model, 16)).contacts(DOUBLE)}


def test_faces_that_a_search_may_take_are_told_from_open_states(monkeypatch):
  """Of the faces within 5 degrees each engine takes its first; without them all states agree."""
  model = converged(load_model(prisms(60)))
  assert shares(model)[GIVEN] > 0.2
  assert shares(model)[OTHER_CORNERS] == shares(model)[STATES_OPEN] == 0.0
  monkeypatch.setattr(compare, "right_contacts", lambda _model, states, *_: np.zeros(len(states), bool))
  assert shares(model)[OTHER_CORNERS] > 0.2
  assert shares(model)[GIVEN] == shares(model)[STATES_OPEN] == 0.0
  monkeypatch.setattr(compare, "other_faces", lambda found, *_: np.zeros(len(found), bool))
  assert shares(model)[STATES_OPEN] > 0.2


CAPS = """<mujoco><worldbody><geom type="cylinder" size="0.1 0.1"/><body pos="0 0 0.1995">
  <joint type="slide" axis="0 0 1" range="-0.0001 0.0001"/><joint axis="1 0 0" range="-0.1 0.1"/>
  <joint axis="0 0 1"/><geom type="cylinder" size="0.1 0.1"/></body></worldbody></mujoco>"""


def test_what_other_corners_cause_is_compared_with_mujoco_given_them():
  """Two caps have sixteen corners each; MuJoCo takes four others, in nearly every state."""
  model = converged(load_model(CAPS))
  trial = Trial(model, random_states(model, 8))
  assert trial.given(DOUBLE).sum() > 4
  assert (trial.given(DOUBLE) | trial.alike(DOUBLE)).all()
  simulation = NumpySimulation(model, 8, outputs(model))
  assert (
    failed(trial.contacts(DOUBLE) + trial.stages(simulation, DOUBLE) + trial.step(simulation, DOUBLE)) == []
  )
  pairs = [dataclasses.replace(pair, solref=(0.021, 1.0)) for pair in model.pairs]
  softer = NumpySimulation(dataclasses.replace(model, pairs=tuple(pairs)), 8, outputs(model))
  assert failed(trial.stages(softer, DOUBLE)) == ["qacc", "cfrc_ext"]


def test_a_contact_that_one_engine_alone_finds_leaves_the_state_open(monkeypatch):
  """However shallow it is: its force does not begin at zero."""
  model = converged(load_model(prisms(60)))
  trial = Trial(model, random_states(model, 4))
  grazing = np.array([0, 2, -1e-10, 0.0, 0, 0, 0, 0, 0, 1.0, 0, 1])
  contacts = [rows[:0] for rows in trial.expected_contacts]
  trial.expected_contacts = contacts
  monkeypatch.setattr(trial, "found_contacts", lambda _: [contacts[0], np.array([grazing]), *contacts[2:]])
  assert trial.alike(DOUBLE).tolist() == [True, False, True, True]


def test_states_that_are_all_open_are_told_and_not_compared(monkeypatch):
  model = converged(load_model(prisms(60)))
  trial = Trial(model, random_states(model, 4))
  for name in ("alike", "given"):
    monkeypatch.setattr(trial, name, lambda _: np.zeros(4, bool))
  simulation = NumpySimulation(model, 4, outputs(model))
  found = trial.contacts(DOUBLE) + trial.stages(simulation, DOUBLE) + trial.step(simulation, DOUBLE)
  names = [finding.quantity for finding in found]
  assert names.count(STATES_OPEN) == names.count(OTHER_CORNERS) == 2
  assert {"qM", "qfrc_bias"} <= {*names}
  assert not {"qacc", "cfrc_ext", "next qvel", "contact distance"} & {*names}


def test_flush_shapes_are_compared_where_both_engines_find_no_contact():
  """In float64; in float32 the kernel may find one."""
  model = converged(
    load_model("""<mujoco><worldbody><geom type="cylinder" size="0.1 0.1"/><body pos="0 0 0.2">
      <joint axis="0 0 1"/><geom type="cylinder" size="0.1 0.1"/></body></worldbody></mujoco>""")
  )
  trial = Trial(model, random_states(model, 4))
  assert not any(map(len, trial.expected_contacts))
  assert trial.alike(DOUBLE).all()
  assert not trial.alike(SINGLE).any()


INSIDE = """<mujoco><worldbody><site name="far" pos="0 0 1"/><site name="in" pos="0.1 0.01 0.8"/>
  <geom name="ring" type="cylinder" size="0.05 0.1" pos="0.1 0 0.8" euler="90 20 0" contype="0"/>
  <body pos="0 0 0.7"><joint axis="0 1 0" range="-90 90"/><joint axis="1 0 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" contype="0"/>
  <site name="near" pos="-0.05 0.02 -0.3"/></body></worldbody><tendon>
  <spatial stiffness="30"><site site="far"/><geom geom="ring" {}/><site site="near"/></spatial>
  </tendon></mujoco>"""


@pytest.mark.parametrize(("side", "least", "most"), [('sidesite="in"', 1e-9, 1e-7), ("", 0.0, 1e-12)])
def test_wraps_from_within_are_as_far_as_mujocos_search(side, least, most):
  model = load_model(INSIDE.format(side))
  trial, simulation = Trial(model, random_states(model, 64)), NumpySimulation(model, 64, outputs(model))
  findings = trial.stages(simulation, DOUBLE)
  assert_holds(findings)
  passive = next(finding for finding in findings if finding.quantity == "qfrc_passive")
  assert least <= passive.error.max() < most
  everywhere = trial._finding("qfrc_passive", np.full(64, 5e-7), DOUBLE)
  assert everywhere.holds == bool(side), "in the median too"


FLUSH = """<mujoco><worldbody><geom type="box" size="0.1 0.1 0.5"/>
  <body pos="0 0 0.2"><joint axis="0 0 1"/><geom type="box" size="0.06 0.06 0.3" pos="0.04 0 0.6"/></body>
  </worldbody></mujoco>"""


def test_flush_boxes_are_compared_with_the_engines_own_contacts():
  """Rounding decides which corners touch: no bound is widened for it."""
  model = load_model(FLUSH)
  trial, exact = Trial(model, random_states(model, 16)), dataclasses.replace(DOUBLE, rounding=0.0)
  found, expected = trial.found_contacts(np.float64), trial.expected_contacts
  others = np.array([len(a) != len(b) for a, b in zip(found, expected, strict=True)])
  assert others.any()
  np.testing.assert_array_equal(trial.given(exact), others)
  simulation = NumpySimulation(model, 16, outputs(model))
  findings = trial.contacts(exact) + trial.stages(simulation, exact) + trial.step(simulation, exact)
  assert failed(findings) == []
