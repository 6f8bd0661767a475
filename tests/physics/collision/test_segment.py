"""Spheres and capsules among themselves, on plain numbers, against MuJoCo's contacts."""

import numpy as np
import pytest

from physics.algebra.spatial import ZERO, Vector
from physics.collision.geometry import geom_shape
from physics.collision.segment import Segment, candidate, segments
from physics.dynamics.kinematics import poses
from physics.load import load_model
from physics.trace.trace import Program
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
  shapes = [
    geom_shape(model, p, geom, -p.origin[model.geom_bodyid[geom]]) for geom in (pair.geom1, pair.geom2)
  ]
  touches = segments(Program(), *shapes, pair.margin)
  rows = [candidate.resolve() for candidate in touches if candidate.active]
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


@pytest.mark.parametrize("shape", [SPHERE_SIZE, 'type="capsule" size="0.2 0.3"'])
def test_coinciding_geoms_push_along_x(shape):
  model = two(shape, shape)
  assert_same_rows(found_contacts(model, state((0, 0, 0))), mujoco_contacts(model, state((0, 0, 0))))


@pytest.mark.parametrize("shapes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_turned_geoms_that_coincide_push_across_both_axes(shapes):
  model = two(*((SPHERE_SIZE, 'type="capsule" size="0.2 0.3"')[shape] for shape in shapes))
  qpos = state((0, 0, 0), TILTED, LYING)
  assert_same_rows(found_contacts(model, qpos), mujoco_contacts(model, qpos))


def test_a_contact_counts_within_the_margin():
  one, other = Segment(ZERO, ZERO, 0.5), Segment(Vector(1.25, 0.0, 0.0), ZERO, 0.5)
  assert candidate(one, other, (0.0, 0.0), 0.375).active
  assert not candidate(one, other, (0.0, 0.0), 0.25).active
  assert candidate(one, other, (0.0, 0.0), 0.375).resolve() == (0.25, (1, 0, 0), (0.625, 0, 0))
