"""Planes with all shapes, against MuJoCo's contacts."""

import numpy as np
import pytest

from physics.load import load_model
from tests.physics.collision.scene import found_contacts, mujoco_contacts
from tests.physics.oracle import assert_same_rows

SHAPES = {  # geom, and most contacts
  "sphere": ('size="0.1"', 1),
  "capsule": ('type="capsule" size="0.1 0.2"', 2),
  "ellipsoid": ('type="ellipsoid" size="0.1 0.2 0.05"', 1),
  "cylinder": ('type="cylinder" size="0.2 0.1"', 4),
  "box": ('type="box" size="0.1 0.2 0.05"', 4),
}


def scene(geom):
  """Return two free geoms over two planes that make a valley."""
  place = 'pos="0.1 0 0" euler="20 0 50" contype="0" margin="0.01"'
  return load_model(f"""<mujoco><worldbody>
    <geom type="plane" size="1 1 1" euler="0 20 0"/>
    <geom type="plane" size="1 1 1" pos="0.1 -0.2 0" euler="0 -30 10"/>
    {f"<body><freejoint/><geom {geom} {place}/></body>" * 2}</worldbody></mujoco>""")


@pytest.mark.parametrize("shape", SHAPES)
def test_contacts_are_mujocos(shape):
  geom, most = SHAPES[shape]
  model, random, counts = scene(geom), np.random.default_rng(0), []
  place = random.uniform((-0.3, -0.3, -0.2), (0.3, 0.3, 0.4), (150, 2, 3))
  qpos = np.concatenate([place, random.normal(size=(150, 2, 4))], axis=2).reshape(150, -1)
  for state, found in zip(qpos, found_contacts(model, qpos), strict=True):
    expected = mujoco_contacts(model, state)
    assert_same_rows(found, expected)
    counts.append(len(expected))
  assert min(counts) == 0
  assert max(counts) == 4 * most


FLAT = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body><freejoint/><geom type="{}" size="0.1 0.2 0.3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("shape", ["cylinder", "box"])
def test_flat_contacts_are_mujocos(shape):
  turns = [(1, 0, 0, 0), (0, 1, 0, 0), (0.5, 0.5, 0.5, 0.5), (0.8, 0, 0, 0.6), (0.8, 0.6, 0, 0)]
  model = load_model(FLAT.format(shape))
  touching, apart = (np.array([[0.3, -0.2, height, *turn] for turn in turns]) for height in (0.09, 5.0))
  for pose, found in zip(touching, found_contacts(model, touching), strict=True):
    expected = mujoco_contacts(model, pose)
    assert len(expected) >= 1
    assert_same_rows(found, expected)
  assert not any(map(len, found_contacts(model, apart)))
