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


def scene(geom, count=1):
  """Return free geoms over two planes that make a valley."""
  place = 'pos="0.1 0 0" euler="20 0 50" contype="0" margin="0.01"'
  return load_model(f"""<mujoco><worldbody>
    <geom type="plane" size="1 1 1" euler="0 20 0"/>
    <geom type="plane" size="1 1 1" pos="0.1 -0.2 0" euler="0 -30 10"/>
    {f"<body><freejoint/><geom {geom} {place}/></body>" * count}</worldbody></mujoco>""")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2])
def test_contacts_are_mujocos(shape, count):
  geom, most = SHAPES[shape]
  model, random, counts = scene(geom, count), np.random.default_rng(0), []
  place = random.uniform((-0.3, -0.3, -0.2), (0.3, 0.3, 0.4), (150, count, 3))
  qpos = np.concatenate([place, random.normal(size=(150, count, 4))], axis=2).reshape(150, -1)
  for state, found in zip(qpos, found_contacts(model, qpos), strict=True):
    expected = mujoco_contacts(model, state)
    assert_same_rows(found, expected)
    counts.append(len(expected))
  assert min(counts) == 0
  assert max(counts) == 2 * most * count


FLAT = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body><freejoint/><geom type="{}" size="0.1 0.2 0.3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("shape", ["cylinder", "box"])
@pytest.mark.parametrize(
  "turn", [(1, 0, 0, 0), (0, 1, 0, 0), (0.5, 0.5, 0.5, 0.5), (0.8, 0, 0, 0.6), (0.8, 0.6, 0, 0)]
)
def test_flat_contacts_are_mujocos(shape, turn):
  model = load_model(FLAT.format(shape))
  qpos = np.array([[0.3, -0.2, 0.09, *turn], [0.3, -0.2, 5.0, *turn]])
  touching, apart = found_contacts(model, qpos)
  expected = mujoco_contacts(model, qpos[0])
  assert len(expected) >= 1
  assert_same_rows(touching, expected)
  assert len(apart) == 0
