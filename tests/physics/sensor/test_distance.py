"""Distances between all pairs of shapes that the engine measures, against MuJoCo's."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from physics.collision.convex import CONVEX
from physics.collision.geometry import MESH
from physics.load import load_model
from physics.parity.states import States
from physics.sensor.distance import MEASURED
from tests.physics.reports import assert_equal, reports

NAMES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
SEARCHED = [kinds for kinds in combinations_with_replacement(CONVEX, 2) if kinds not in MEASURED]
STONE = " ".join(f"{x:.3f}" for x in np.random.default_rng(0).normal(scale=0.2, size=60))
STATES = 24


def scattered(model, spread):
  """Return states with the first body at random poses."""
  random = np.random.default_rng(0)
  qpos = np.tile(model.qpos0, (STATES, 1))
  qpos[:, :3] += random.uniform(-spread, spread, size=(STATES, 3))
  qpos[:, 3:7] = random.normal(size=(STATES, 4))
  return States(qpos, np.zeros((STATES, model.nv)), np.zeros((STATES, 0)))


def name(kinds):
  return "-".join(NAMES[kind] for kind in kinds)


def measured(kinds, swapped):
  """Return what distance sensors of two geoms report here and in MuJoCo C, [state, number]."""
  geoms = ['mesh="stone"' if kind == MESH else 'size="0.2 0.3 0.25"' for kind in kinds]
  still, moving = (f'type="{NAMES[kind]}" {geom}' for kind, geom in zip(kinds, geoms, strict=True))
  one, two = ("moving", "still") if swapped else ("still", "moving")
  sensors = [
    f'<{kind} geom1="{one}" geom2="{two}" cutoff="{cutoff}"/>'
    for kind in ("distance", "normal", "fromto")
    for cutoff in (1.2, 0.3)
  ]
  model = load_model(f"""<mujoco><option ccd_tolerance="1e-9" ccd_iterations="200"/>
    <asset><mesh name="stone" vertex="{STONE}"/></asset><worldbody>
    <geom name="still" {still} pos="0.1 0.2 0.3" euler="10 20 30"/>
    <body><freejoint/><geom name="moving" {moving}/></body>
  </worldbody><sensor>{"".join(sensors)}</sensor></mujoco>""")
  return reports(model, scattered(model, 0.8), ["sensordata"])["sensordata"]


@pytest.mark.parametrize("kinds", sorted(MEASURED), ids=name)
def test_distances_are_mujocos(kinds):
  found, expected = measured(kinds, swapped=sum(kinds) % 2 == 1)
  assert (expected[:, 0] < 1.2).sum() > 3
  assert_equal(found, expected, "distance, normal, segment")


@pytest.mark.parametrize("kinds", SEARCHED, ids=name)
def test_distances_that_are_searched_are_mujocos(kinds):
  found, expected = measured(kinds, swapped=kinds[0] != kinds[1])
  assert (expected[:, 0] < 1.2).sum() > 3
  np.testing.assert_allclose(found[:, :2], expected[:, :2], atol=1e-6)
  np.testing.assert_allclose(found[:, 2:8], expected[:, 2:8], atol=1e-3)


def test_planes_are_never_near_each_other():
  model = load_model("""<mujoco><worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom name="wall" type="plane" size="1 1 1" zaxis="1 0 0"/>
    <body><freejoint/><geom size="0.1"/></body>
  </worldbody><sensor>
    <distance geom1="floor" geom2="wall" cutoff="1"/><fromto geom1="floor" geom2="wall" cutoff="1"/>
  </sensor></mujoco>""")
  found, expected = reports(model, scattered(model, 0.3), ["sensordata"])["sensordata"]
  assert_equal(found, expected, "planes")
