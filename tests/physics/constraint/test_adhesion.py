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


STICKY = """<mujoco><option timestep="0.005"><flag {flag}/></option><worldbody>
  <geom type="plane" size="1 1 1" pos="0 0 1" zaxis="0 0 {up}" adhesion="{adhesion}" gap="{gap}"/>
  <body pos="0 0 {height}"><freejoint/><geom size="0.1" mass="0.5" condim="{condim}"/></body>
  </worldbody></mujoco>"""


def sticky(adhesion, height, gap=0.0, condim=3, up=-1, flag=""):
  """Return a ball of 4.9 N beside a plane at height 1, below it or (up=1) above it, after a step and 1 s."""
  xml = STICKY.format(adhesion=adhesion, height=height, gap=gap, condim=condim, up=up, flag=flag)
  simulation = NumpySimulation(load_model(xml), 1, ["qfrc_passive", "cfrc_ext", "contact_count"])
  simulation.step()
  pull = float(simulation.qfrc_passive[0, 2])
  simulation.step(200)
  return simulation, pull


@pytest.mark.parametrize("condim", [1, 4])
def test_a_ceiling_holds_what_weighs_less_than_its_adhesion(condim):
  held, pull = sticky(6.0, 0.9, condim=condim, gap=0.05)
  assert pull == pytest.approx(6.0)
  assert float(held.qpos[0, 2]) == pytest.approx(0.9, abs=0.01)
  assert float(held.cfrc_ext[0, 1, 5]) == pytest.approx(0.5 * 9.81, rel=1e-3)  # the net force
  fallen, pull = sticky(4.0, 0.9, condim=condim, gap=0.05)
  assert pull == pytest.approx(4.0)
  assert float(fallen.qpos[0, 2]) < 0.0


def test_without_passive_forces_geoms_do_not_pull_as_in_mujoco():
  fallen, pull = sticky(6.0, 0.9, gap=0.05, flag='spring="disable" damper="disable"')
  assert pull == 0.0
  assert_agrees(fallen.model)


def test_adhesion_leaves_the_depth_of_what_rests_as_it_is():
  depths = [float(sticky(adhesion, 1.1, up=1)[0].qpos[0, 2]) for adhesion in (0.0, 3.0, 9.0)]
  assert depths == pytest.approx([depths[0]] * 3, abs=1e-9)


def test_a_magnet_pulls_across_its_gap_and_no_further():
  near, pull = sticky(9.0, 0.86, gap=0.05)
  assert (pull, int(near.contact_count[0])) == (pytest.approx(9.0), 1)
  assert float(near.qpos[0, 2]) > 0.89
  assert sticky(9.0, 0.84, gap=0.05)[1] == 0.0


@pytest.mark.parametrize(
  ("attributes", "expected"),
  [(("", ""), 5.0), (('priority="1"', ""), 2.0), (("", 'priority="1"'), 3.0)],
)
def test_geoms_add_their_adhesion_unless_one_has_priority(attributes, expected):
  one, two = attributes
  model = load_model(f"""<mujoco><worldbody><geom type="plane" size="1 1 1" adhesion="2" {one}/>
    <body><freejoint/><geom size="1" adhesion="3" {two}/></body></worldbody></mujoco>""")
  assert [pair.adhesion for pair in model.pairs] == [expected]
