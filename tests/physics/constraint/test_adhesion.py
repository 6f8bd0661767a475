"""Adhesion of bodies that actuators pull, and of geoms, against MuJoCo and by hand."""

import mujoco
import numpy as np
import pytest

from physics.load import load_model
from physics.parity import NumpySimulation
from tests.physics.conftest import load
from tests.physics.reports import assert_agrees

BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body name="ball" pos="0 0 {height}"><freejoint/><geom size="0.1" mass="1" gap="{gap}"/></body>
  <body name="other" pos="0.2 0 {height}"><freejoint/><geom size="0.1001" mass="1" condim="{condim}"/></body>
  </worldbody><actuator><adhesion body="ball" ctrlrange="0 1" gain="9"/></actuator></mujoco>"""


@pytest.mark.parametrize(("integrator", "name"), [("implicitfast", "sticky"), ("RK4", "adhesion")])
def test_motion_with_elliptic_cones_is_mujocos(integrator, name):
  mj = load_model(load(name).mj).mj
  mj.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
  assert_agrees(load_model(mj, integrator=integrator), 16)


def pulled(height, gap=0.0, condim=3):
  """Return the actuator's joint forces on a ball at a height, with another ball beside it."""
  model = load_model(BALL.format(height=height, gap=gap, condim=condim))
  simulation = NumpySimulation(model, 1, ["qfrc_actuator", "contact_count"])
  simulation.ctrl[:] = 1.0
  simulation.forward()
  return simulation.qfrc_actuator[0].numpy(), int(simulation.contact_count[0])


@pytest.mark.parametrize(
  ("height", "gap", "condim", "touching", "sideways", "down"),
  [
    *[(0.09, 0.0, condim, 3, 4.5, -4.5) for condim in (1, 3, 6)],  # in the floor, and in the other ball
    (0.15, 0.0, 3, 1, 9.0, 0.0),  # the floor is too far
    (0.15, 0.06, 3, 1, 4.5, -4.5),  # in the gap contacts do not act, but adhesion does
  ],
)
def test_the_force_is_shared_among_what_touches(height, gap, condim, touching, sideways, down):
  force, count = pulled(height, gap, condim)
  assert count == touching
  np.testing.assert_allclose(force[[0, 2, 6]], [sideways, down, -sideways], atol=1e-12)


STICKY = """<mujoco><option><flag {}/></option><worldbody>
  <geom type="plane" size="1 1 1" pos="0 0 1" zaxis="0 0 -1" adhesion="6" gap="0.05"/>
  <body pos="0 0 0.88"><freejoint/><geom size="0.1" mass="0.5"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("flag", "pull"), [("", 6.0), ('spring="disable" damper="disable"', 0.0)])
def test_geoms_pull_as_mujocos_do_where_passive_forces_act(flag, pull):
  model = load_model(STICKY.format(flag))
  assert_agrees(model)
  simulation = NumpySimulation(model, 1, ["qfrc_passive"])
  simulation.forward()
  assert float(simulation.qfrc_passive[0, 2]) == pytest.approx(pull)


@pytest.mark.parametrize(
  ("attributes", "expected"),
  [(("", ""), 5.0), (('priority="1"', ""), 2.0), (("", 'priority="1"'), 3.0)],
)
def test_geoms_add_their_adhesion_unless_one_has_priority(attributes, expected):
  one, two = attributes
  model = load_model(f"""<mujoco><worldbody><geom type="plane" size="1 1 1" adhesion="2" {one}/>
    <body><freejoint/><geom size="1" adhesion="3" {two}/></body></worldbody></mujoco>""")
  assert [pair.adhesion for pair in model.pairs] == [expected]
