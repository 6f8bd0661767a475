"""Rays from sites and through the pixels of cameras, against MuJoCo's."""

import numpy as np
import pytest

from physics.load import load_model
from tests.physics.reports import assert_equal, reports
from tests.physics.sensor.test_distance import STATES, scattered

ROOM = """<mujoco><worldbody>
    <geom type="plane" size="0 0 1" pos="0 0 -1"/>
    <body><freejoint/><geom size="0.2"/>
      <site name="eye" pos="0.1 0 0" euler="20 0 0"/><camera name="eye" pos="0.1 0 0" euler="20 0 0" {}/>
    </body>
    <body pos="0 0 1"><joint/><geom type="box" size="1 0.5 0.1"/></body>
  </worldbody><sensor>{}</sensor></mujoco>"""
FIELDS = "dist dir origin point depth"
LENSES = {
  "field of view": 'fovy="70"',
  "lens": 'sensorsize="0.02 0.012" focal="0.012 0.011" principal="0.002 -0.001"',
  "orthographic": 'projection="orthographic" fovy="1.4"',
}


def data(camera, *sensors):
  """Return what sensors report here and in MuJoCo C, [state, number]."""
  model = load_model(ROOM.format(camera, "".join(f"<rangefinder {sensor}/>" for sensor in sensors)))
  return reports(model, scattered(model, 0.3), ["sensordata"])["sensordata"]


def test_rays_are_mujocos():
  found, expected = data(
    "", 'site="eye"', f'site="eye" data="{FIELDS}" cutoff="0.5"', 'site="eye" data="depth"'
  )
  assert 3 < (expected[:, 0] > 0).sum() < STATES
  assert_equal(found, expected, "rays")


@pytest.mark.parametrize("lens", LENSES)
def test_images_are_mujocos(lens):
  camera = f'resolution="4 3" {LENSES[lens]}'
  found, expected = data(camera, 'camera="eye"', f'camera="eye" data="{FIELDS}" cutoff="2"')
  assert expected.shape == (STATES, 12 + 12 * 11)
  hits = (expected[:, :12] > 0).mean(axis=0)
  assert (hits > 0.1).all()
  assert hits.mean() < 0.95
  assert len(np.unique(expected[0, :12])) > 2
  assert_equal(found, expected, "images")
