"""Ways out of an overlap, judged by the shapes."""

import numpy as np
import pytest

from physics.load import load_model
from physics.parity import random_states, separations
from physics.parity.contacts import traced_contacts
from physics.parity.separations import right_contacts

CORNERS = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
TOLERANCES = np.array([1e-5, 1e-4, 1e-3, 1e-9])


def slab_with(shape):
  """A box with its top at 0.1, and a shape above it that slides along z."""
  return load_model(f"""<mujoco><asset><mesh name="cube" vertex="{CORNERS}"/></asset>
    <worldbody><geom type="box" size="2 2 0.1"/>
    <body><joint type="slide" axis="0 0 1"/>{shape}</body></worldbody></mujoco>""")


def states_at(model, height):
  states = random_states(model, 1)
  states.qpos[:] = height
  return states


def contact(distance, normal=(0.0, 0.0, 1.0), point=(0.0, 0.0, 0.1)):
  return [0, 1, distance, 0.0, *point, *normal, 0, 1]


def judge(model, height, found, expected, ours=(), theirs=()):
  tables = [[np.array(rows, float).reshape(-1, 12)] for rows in (found, expected, ours, theirs)]
  return bool(right_contacts(model, states_at(model, height), tables, TOLERANCES)[0])


@pytest.mark.parametrize(
  ("shape", "below"),
  [
    ('<geom size="0.1"/>', 0.1),
    ('<geom type="capsule" size="0.1 0.2"/>', 0.3),
    ('<geom type="ellipsoid" size="0.1 0.2 0.3"/>', 0.3),
    ('<geom type="cylinder" size="0.1 0.2"/>', 0.2),
    ('<geom type="cylinder" size="0.1 0.2" euler="90 0 0"/>', 0.1),
    ('<geom type="box" size="0.1 0.2 0.3"/>', 0.3),
    ('<geom type="mesh" mesh="cube"/>', 0.1),
  ],
)
def test_a_way_out_is_as_long_as_the_shapes_overlap(shape, below, monkeypatch):
  monkeypatch.setattr(separations, "searched_pairs", lambda _: {frozenset((0, 1))})  # whatever shapes
  model = slab_with(shape)
  theirs = [contact(-0.1, (1.0, 0.0, 0.0))]
  assert judge(model, 0.1 + below - 0.02, [contact(-0.02)], theirs, theirs=theirs) is False, "theirs is none"
  both = [contact(-0.02)]
  assert judge(model, 0.1 + below - 0.02, [contact(-0.02, point=(0.01, 0, 0.1))], both, theirs=both)
  assert not judge(model, 0.1 + below - 0.02, [contact(-0.03, point=(0.01, 0, 0.1))], both, theirs=both)


def test_a_shorter_way_out_is_right_and_a_longer_one_is_not():
  """A cube on its side: 0.02 up, or 0.3 sideways."""
  model = slab_with('<geom type="box" size="0.1 0.1 0.1" pos="1.9 0 0"/>')
  up, sideways = [contact(-0.02)], [contact(-0.2, (1.0, 0.0, 0.0))]
  assert judge(model, 0.18, up, sideways, theirs=sideways)
  assert not judge(model, 0.18, sideways, up, theirs=up)


def test_rounding_may_decide_about_shapes_that_lie_flush():
  model = slab_with('<geom size="0.1"/>')
  assert judge(model, 0.2, [contact(-1e-12)], [])
  assert judge(model, 0.2, [], [contact(-1e-12)])
  assert not judge(model, 0.2, [contact(-1e-6)], [])
  assert not judge(model, 0.2, [], [contact(-1e-6)])


def test_flush_corners_of_boxes_may_be_others_and_deep_ones_may_not():
  model = slab_with('<geom type="box" size="0.1 0.1 0.1"/>')
  corners = [(x, y, 0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
  found, expected = ([contact(-1e-16, point=p) for p in some] for some in (corners[:3], corners[1:2]))
  assert judge(model, 0.2, found, expected)
  found, expected = ([contact(-0.01, point=p) for p in some] for some in (corners[:3], corners))
  assert not judge(model, 0.19, found, expected), "a corner is missing"


@pytest.mark.parametrize(("tilt", "right"), [(0.0, True), (5.0, False)])
def test_of_vertices_that_are_as_low_rounding_decides_which_is_the_lowest(tilt, right):
  """A cube stands on the ground, with four contacts or with one; on a corner it has what MuJoCo finds."""
  model = load_model(f"""<mujoco><asset><mesh name="cube" vertex="{CORNERS}"/></asset>
    <worldbody><geom type="plane" size="2 2 1"/><body><joint type="slide" axis="0 0 1"/>
    <geom type="mesh" mesh="cube" euler="{tilt} {tilt} 0"/></body></worldbody></mujoco>""")
  states = states_at(model, 0.09)
  four, none = traced_contacts(model, states)[0], [np.zeros((0, 12))]
  assert len(four) == 4 or tilt
  few = four[:1] if tilt == 0.0 else four[[np.argmin(four[:, 2])]]
  assert bool(right_contacts(model, states, [[four], [few], none, none], TOLERANCES)[0]) is right
  four[0, 4] += 0.001
  assert not right_contacts(model, states, [[four], [few], none, none], TOLERANCES)[0], "that is no vertex"


def test_either_of_two_equal_separations_from_a_box_is_right():
  model = slab_with('<geom type="box" size="0.05 0.05 0.05"/>')
  up, down = [contact(-0.15)], [contact(-0.15, (0.0, 0.0, -1.0))]
  assert judge(model, 0.0, up, down)
  assert not judge(model, 0.01, down, up), "it is longer"
