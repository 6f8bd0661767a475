"""Boxes upon each other, against MuJoCo's contacts; test_narrow.py compares random poses."""

import numpy as np
import pytest

from physics.collision.box_box import box_box
from physics.collision.geometry import Shape
from physics.load import load_model
from physics.trace.trace import where
from tests.physics.collision.scene import assert_touches_as_mujoco, found_contacts
from tests.physics.oracle import assert_same_rows, evaluate


def scene(sizes, margin=0.0, euler="0 0 0"):
  """Return a model of a box that stands still and a free one."""
  return load_model(f"""<mujoco><worldbody>
    <geom type="box" size="{sizes[0]}" euler="{euler}" margin="{margin}"/>
    <body><freejoint/><geom type="box" size="{sizes[1]}" margin="{margin}"/></body></worldbody></mujoco>""")


TURNED, TIPPED = (np.cos(0.4), 0, 0, np.sin(0.4)), (np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0)
CASES = {  # place, rotation, margin, and how many contacts
  "flush": ((0, 0, 0.199), (1, 0, 0, 0), 0, 4),
  "flush on one side": ((0.1, 0, 0.199), (1, 0, 0, 0), 0, 4),
  "shifted": ((0.1, 0.05, 0.199), (1, 0, 0, 0), 0, 4),
  "turned a quarter": ((0, 0, 0.199), (np.sqrt(0.5), 0, 0, np.sqrt(0.5)), 0, 4),
  "turned": ((0.02, 0.01, 0.199), TURNED, 0, 8),
  "turned, overhanging": ((0.25, 0.11, 0.199), TURNED, 0, 6),
  "over a corner": ((0.45, 0.3, 0.199), (1, 0, 0, 0), 0, 4),
  "upside down": ((0.05, 0.02, 0.199), (0, 1, 0, 0), 0, 4),
  "below": ((0.05, 0.02, -0.199), (1, 0, 0, 0), 0, 4),
  "beside": ((0.599, 0.02, 0.03), (1, 0, 0, 0), 0, 4),
  "on an edge": ((0.02, 0.01, 0.1 + np.sqrt(0.5) * 0.3 - 0.001), TIPPED, 0, 2),
  "tilted a little": ((0.02, 0.01, 0.2), (1, 1e-3, 2e-3, 0), 0, 2),
  "within the margin": ((0.1, 0.05, 0.21), (1, 0, 0, 0), 0.01, 4),
  "beyond the margin": ((0.1, 0.05, 0.23), (1, 0, 0, 0), 0.01, 0),
  "one inside the other": ((0.01, 0.02, 0.03), TURNED, 0, 8),
}


@pytest.mark.parametrize("margin", [0, 0.01])
def test_boxes_at_rest_touch_where_mujocos_do(margin):
  cases = {
    name: ((*place, *turn), count) for name, (place, turn, own, count) in CASES.items() if own == margin
  }
  assert_touches_as_mujoco(scene(("0.3 0.2 0.1", "0.3 0.2 0.1"), margin), cases)


def test_edges_that_cross_touch_once():
  model = scene(("0.3 0.2 0.1", "0.3 0.2 0.1"), euler="45 0 0")
  pose = (0.02, 0.01, 2 * np.sqrt(0.5) * 0.3 - 0.01, np.cos(np.pi / 8), 0, np.sin(np.pi / 8), 0)
  assert_touches_as_mujoco(model, {"crossing": (pose, 1)})


@pytest.mark.parametrize("jitter", [1e-10, 1e-8, 1e-7])
def test_what_rounding_moves_keeps_its_corners(jitter):
  """Equal boxes upon each other, moved by what float32 cannot tell, touch at their four corners only."""
  model, random = scene(("0.2 0.2 0.1", "0.2 0.2 0.1")), np.random.default_rng(0)
  qpos = np.array([0, 0, 0.1999, 1, 0, 0, 0]) + jitter * random.normal(size=(50, 7))
  corners = np.array([[x, y] for x in (-0.2, 0.2) for y in (-0.2, 0.2)])
  for found in found_contacts(model, qpos):
    np.testing.assert_allclose(found[:, 1], -1e-4, atol=10 * jitter)
    assert_same_rows(found[:, 5:7], corners, 1e-5)


@pytest.mark.parametrize("half", [0.2, 0.1])
def test_no_corner_is_lost_to_rounding(half):
  """Boxes that are flush with each other, turned in thousands of ways, touch at all four corners."""
  random, count = np.random.default_rng(0), 4000
  matrices = np.linalg.qr(random.normal(size=(count, 3, 3)))[0]
  first = random.normal(size=(count, 3))
  second = first + matrices @ [0, 0.2 - half, 0.199]
  numbers = [np.hstack([x, matrices.reshape(count, 9)]).T for x in (first, second)]

  def traced(program, *numbers):
    counted = program.variable(0.0)
    one, two = Shape.of([*numbers[:12], 0.2, 0.2, 0.1]), Shape.of([*numbers[12:], 0.2, half, 0.1])
    for candidate in box_box(program, one, two, 0.0):
      counted[0] = counted[0] + where(candidate.active, 1.0, 0.0)
    return [counted[0]]

  np.testing.assert_array_equal(evaluate(traced, *numbers[0], *numbers[1]), 4)
