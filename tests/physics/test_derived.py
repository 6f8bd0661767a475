"""Forces on bodies by hand, in float32, and asked for anywhere; test_outputs.py compares them with MuJoCo."""

import numpy as np
import pytest

from physics.derived import Derived
from physics.forward import forward
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.states import States
from physics.state.state import State
from tests.physics.conftest import load
from tests.physics.oracle import evaluate
from tests.physics.reports import assert_equal, reports

PRESSED = """<mujoco><default><geom mass="0.01"/><joint axis="0 1 0" armature="1"/></default>
  <worldbody><body name="base"><geom size="0.05" pos="0 0 -1" mass="0.1"/><site name="base"/>
    <body><joint/><geom size="0.1" pos="0.3 0 0"/>
      <body pos="0.3 0 0"><joint/><geom size="0.02"/>
        <body><joint/><geom size="0.1" pos="0 0.1 0"/></body>
      </body>
    </body>
  </body></worldbody>
  <sensor><force site="base"/><torque site="base"/></sensor></mujoco>"""


def test_float32_holds_an_arm_whose_links_push_each_other():
  """Two links overlap by design, and push along their joints' axis with a million times their weight."""
  model, found = load_model(PRESSED), []
  states = random_states(model, 16)
  for dtype in (np.float32, np.float64):
    simulation = NumpySimulation(model, 16, ("cfrc_ext", "sensordata"), dtype)
    states.write_to(simulation)
    simulation.forward()
    found.append(simulation.sensordata.double().numpy().copy())
  assert np.median(np.abs(simulation.cfrc_ext.numpy()).max(axis=(1, 2))) > 1e4
  assert np.median(np.abs(found[0] - found[1]).max(axis=1)) < 1e-5


WEIGHT = """<site name="hook of {0}" pos="{1} 0 2"/><body pos="{1} 0 1">
  <joint type="slide" axis="0 0 1"/><geom size="0.1" mass="2"/><site name="{0}"/></body>"""
ROPE = '<spatial name="{0}" {1}><site site="hook of {0}"/><site site="{0}"/></spatial>'
ROPES = {  # of 1 m that get longer, each with a moving weight of 2 kg; the force that pulls it up [N]
  "spring": ('stiffness="30" springlength="0.9"', 3.0),
  "damper": ('damping="5"', 2.5),
  "actuator": ("", 12.0),
  "limit": ('range="0 0.95" limited="true"', None),
  "friction loss": ('frictionloss="4"', None),
  "equality": ("", None),
}


def test_ropes_pull_their_bodies():
  weights = "".join(WEIGHT.format(name, place) for place, name in enumerate(ROPES))
  ropes = "".join(ROPE.format(name, words) for name, (words, _) in ROPES.items())
  model = load_model(f"""<mujoco><worldbody>{weights}</worldbody><tendon>{ropes}</tendon>
    <equality><tendon tendon1="equality" polycoef="-0.1 0 0 0 0"/></equality>
    <actuator><position tendon="actuator" gear="-2" kp="3" ctrlrange="0 1"/></actuator>
    <sensor>{"".join(f'<force site="{name}"/>' for name in ROPES)}</sensor></mujoco>""")
  states = States(np.zeros((1, model.nq)), np.full((1, model.nv), -0.5), np.zeros((1, 1)))
  (found, expected), (felt, truly) = reports(model, states, ["cfrc_ext", "sensordata"]).values()
  assert_equal(found[0, 1:], expected[0, 1:], "cfrc_ext")
  assert_equal(felt, truly, "force")
  for (name, (_, pull)), force in zip(ROPES.items(), found[0, 1:, 5], strict=True):
    assert force == pytest.approx(pull) if pull else force > 0.1, name


def test_bodies_without_mass_are_where_they_are():
  model = load_model("""<mujoco><worldbody>
    <body name="empty" pos="1 2 3"/>
    <body name="stand" pos="4 5 6">
      <body pos="1 0 0"><joint axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body>
    </body>
  </worldbody></mujoco>""")
  names = ("subtree_com", "subtree_linvel", "subtree_angmom", "cinert", "cvel", "cfrc_int")
  for name, (found, expected) in reports(model, random_states(model, 4), names).items():
    assert_equal(found, expected, name)


def test_quantities_may_be_asked_for_first_in_any_block():
  """A block that no lane runs asks first, and a block that all lanes run asks again."""
  model = load("sensors")

  def traced(program, *numbers):
    memory = program.array(model.nv)
    memory.fill([0.0] * model.nv)
    qpos, qvel = list(numbers[: model.nq]), list(numbers[model.nq :])
    state = State(qpos, qvel, [0.0] * model.na, [], [], [], [0.0] * model.nu)
    derived = Derived(program, model, forward(program, model, state, memory), None)
    for mask in (qpos[0] > 1e9, qpos[0] < 1e9):
      kept = program.array(6 * model.nbody)
      kept.fill([0.0] * len(kept))
      with program.when_any(mask):
        kept.fill([x for force in derived.internal_forces for x in force.components])
    return [*kept.read(), *(x for force in derived.internal_forces for x in force.components)]

  states = random_states(model, 8)
  inside, outside = np.split(evaluate(traced, *states.qpos.T, *states.qvel.T), 2)
  assert np.abs(outside).max() > 1.0
  np.testing.assert_array_equal(inside, outside)
