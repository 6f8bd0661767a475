"""Closest points of spheres and capsules on plain numbers, against MuJoCo's contacts."""

import numpy as np
import pytest

from physics.collision.geometry import (
  CAPSULE,
  Segment,
  SegmentPair,
  default_hint,
  geom_axis,
  geom_bound,
  geom_segment,
  inverse_square,
  tangents,
  touch,
)
from physics.kinematics import poses
from physics.load import load_model
from physics.spatial import ZERO, Quaternion, Vector, cross, dot
from tests.physics.conftest import load
from tests.physics.oracle import assert_same_rows, mujoco_at

SPHERE_SIZE, CAPSULE_SIZES = 'type="sphere" size="0.3"', ("0.1 0.4", "0.15 0.25")
UPRIGHT, LYING, TILTED = (1, 0, 0, 0), (np.sqrt(0.5), 0, np.sqrt(0.5), 0), (0.9, 0.3, -0.1, 0.3)


def two(*shapes, margin=0.02):
  bodies = (f'<body><freejoint/><geom {shape} margin="{margin}"/></body>' for shape in shapes)
  return load_model(f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>")


def capsules():
  return two(*(f'type="capsule" size="{size}"' for size in CAPSULE_SIZES))


def state(position, first=UPRIGHT, second=UPRIGHT):
  """Return qpos of two free bodies, the first at an arbitrary place, the second relative to it."""
  place = np.array([0.5, -2.0, 1.0])
  quaternions = [np.array(q) / np.linalg.norm(q) for q in (first, second)]
  return np.concatenate([place, quaternions[0], place + position, quaternions[1]])


def found_contacts(model, qpos):
  """Return distance, normal and point of the contacts [n, 7] of the model's one pair."""
  p, (pair,) = poses(model, qpos.tolist()), model.pairs
  segments = []
  for geom in (pair.geom1, pair.geom2):
    segment = geom_segment(model, p, geom)
    center = segment.center + p.origin[model.geom_bodyid[geom]]
    segments.append(Segment(center, segment.half_axis, segment.radius))
  inverses = inverse_square(model, pair.geom1), inverse_square(model, pair.geom2)
  both = SegmentPair(*segments, inverses, pair.margin)
  nearest, parallel = both.nearest(all(model.geom_type[g] == CAPSULE for g in (pair.geom1, pair.geom2)))
  touches = [nearest, *(both.at_ends(parallel) if parallel else ())]
  rows = [touch.resolve() for touch in touches if touch.active]
  return np.array([(distance, *normal, *point) for distance, normal, point in rows]).reshape(-1, 7)


def mujoco_contacts(model, qpos):
  data = mujoco_at(model, qpos)
  return np.array([(c.dist, *c.frame[:3], *c.pos) for c in data.contact]).reshape(-1, 7)


CAPSULE_CASES = {
  "side by side": (state((0.2, 0, 0)), 2),
  "side by side, tilted": (state((0.1, 0.1, 0.1), TILTED, TILTED), 2),
  "antiparallel": (state((0.15, 0, 0.1), UPRIGHT, (0, 1, 0, 0)), 2),
  "side by side, shifted": (state((0.2, 0, 0.5)), 2),
  "head to tail": (state((0, 0, 0.85)), 2),
  "within the margin": (state((0.28, 0, 0)), 2),
  "beyond the margin": (state((0.3, 0, 0)), 0),
  "nearly parallel": (state((0.2, 0, 0), UPRIGHT, (1, 2e-4, 0, 0)), 1),
  "crossing": (state((0.05, 0.2, 0.1), UPRIGHT, LYING), 1),
  "crossing, axes meet": (state((0.1, 0, 0.1), UPRIGHT, LYING), 1),
  "end to end": (state((0.4, 0, 0.45), UPRIGHT, LYING), 1),
  "end to middle": (state((0.45, 0, 0.1), UPRIGHT, LYING), 1),
  "middle to end": (state((0.1, 0, 0.45), LYING, UPRIGHT), 1),
  "end to end, tilted": (state((0.1, 0.05, 0.75), UPRIGHT, TILTED), 1),
}


@pytest.mark.parametrize("case", CAPSULE_CASES)
def test_capsules_touch_where_mujocos_do(case):
  model, (qpos, count) = capsules(), CAPSULE_CASES[case]
  expected = mujoco_contacts(model, qpos)
  assert len(expected) == count
  assert_same_rows(found_contacts(model, qpos), expected)


@pytest.mark.parametrize("shapes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_random_pairs_touch_where_mujocos_do(shapes):
  model = two(*((SPHERE_SIZE, 'type="capsule" size="0.2 0.3"')[shape] for shape in shapes))
  random, counts = np.random.default_rng(0), []
  for _ in range(40):
    qpos = state(0.4 * random.normal(size=3), random.normal(size=4), random.normal(size=4))
    expected = mujoco_contacts(model, qpos)
    assert_same_rows(found_contacts(model, qpos), expected)
    counts.append(len(expected))
  assert 5 < sum(counts) < 40


@pytest.mark.parametrize("shape", [SPHERE_SIZE, 'type="capsule" size="0.2 0.3"'])
def test_coinciding_geoms_push_along_x(shape):
  model = two(shape, shape)
  assert_same_rows(found_contacts(model, state((0, 0, 0))), mujoco_contacts(model, state((0, 0, 0))))


def test_a_contact_counts_within_the_margin_where_asked():
  one, other = Segment(ZERO, ZERO, 0.5), Segment(Vector(1.25, 0.0, 0.0), ZERO, 0.5)
  assert touch(one, other, (0.0, 0.0), 0.375, True).active
  assert not touch(one, other, (0.0, 0.0), 0.25, True).active
  assert not touch(one, other, (0.0, 0.0), 0.375, False).active
  assert touch(one, other, (0.0, 0.0), 0.375, True).resolve() == (0.25, (1, 0, 0), (0.625, 0, 0))


def test_tangents_are_mujocos():
  model = two(SPHERE_SIZE, SPHERE_SIZE)
  for direction in (*np.eye(3), *-np.eye(3), *np.random.default_rng(0).normal(size=(20, 3))):
    normal = direction / np.linalg.norm(direction)
    (contact,) = mujoco_at(model, state(0.5 * normal)).contact
    first, second = tangents(Vector(*normal.tolist()), default_hint(Vector(*normal.tolist())))
    np.testing.assert_allclose([*normal, *first, *second], contact.frame, atol=1e-12)


def test_the_first_tangent_is_nearest_to_the_hint():
  normal, hint = Vector(0.6, 0.0, 0.8), Vector(1.0, 2.0, 0.0)
  first, second = tangents(normal, hint)
  assert abs(dot(first, normal)) < 1e-15
  assert dot(first, first) == pytest.approx(1)
  assert dot(second, hint) == pytest.approx(0)
  assert dot(first, hint) > 0
  assert second == cross(normal, first)
  assert tangents(Vector(0.0, 0.0, 1.0), Vector(0.0, 0.0, 3.0))[0] == (1, 0, 0)


def test_shapes_of_geoms():
  model = load("static_shapes")
  for geom in range(model.ngeom):
    matrix = np.array(Quaternion.constant(model.geom_quat[geom]).matrix())
    np.testing.assert_allclose(geom_axis(model, geom), matrix[:, 2], atol=1e-12)
    if model.geom_type[geom]:
      assert geom_bound(model, geom) == pytest.approx(model.geom_rbound[geom])
      half = geom_segment(model, poses(model, model.qpos0.tolist()), geom).half_axis
      length = 1 / np.sqrt(inverse_square(model, geom)) if model.geom_type[geom] == CAPSULE else 0
      assert np.linalg.norm(half) == pytest.approx(length)
