"""What lies flat on a plane, against MuJoCo's contacts; test_narrow.py compares all shapes in other poses."""

import numpy as np
import pytest

from physics.algebra.spatial import Quaternion
from physics.load import load_model
from tests.physics.collision.scene import assert_contacts_are_mujocos, found_contacts

FLAT = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body><freejoint/><geom type="{}" size="0.1 0.2 0.3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("shape", ["cylinder", "box"])
def test_flat_contacts_are_mujocos(shape):
  turns = [(1, 0, 0, 0), (0, 1, 0, 0), (0.5, 0.5, 0.5, 0.5), (0.8, 0, 0, 0.6), (0.8, 0.6, 0, 0)]
  model = load_model(FLAT.format(shape))
  touching, apart = (np.array([[0.3, -0.2, height, *turn] for turn in turns]) for height in (0.09, 5.0))
  assert min(assert_contacts_are_mujocos(model, touching)) >= 1
  assert not any(map(len, found_contacts(model, apart)))


def test_a_brick_of_a_mesh_lies_on_four_corners():
  corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (-0.05, 0.05))
  model = load_model(f"""<mujoco><asset><mesh name="brick" vertex="{corners}"/></asset><worldbody>
    <geom type="plane" size="1 1 1" euler="10 20 0"/>
    <body><freejoint/><geom type="mesh" mesh="brick" margin="0.01"/></body></worldbody></mujoco>""")
  tilt = model.geom_quat[0].tolist()
  up = Quaternion.normalize(tilt).matrix().column(2)
  (found,) = found_contacts(model, np.array([[*up * 0.04, *tilt]]))
  assert len(found) == 4
  np.testing.assert_allclose(found[:, 1], -0.01, atol=1e-6)
