"""Every pair of shapes in whole scenes, still and moving, against MuJoCo's contacts."""

import dataclasses
from itertools import combinations_with_replacement

import mujoco
import numpy as np
import pytest

from physics.collision.convex import CONVEX
from physics.collision.geometry import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, PLANE, SPHERE
from physics.collision.narrow import FACES, NARROW, ONE_POINT, asset, can_collide, narrow_phase
from physics.constraint.world import find_world_contacts
from physics.dynamics.kinematics import poses
from physics.load import load_model
from physics.parity import random_states
from physics.parity.contacts import DISTANCE, MARGIN, contact_errors, mujoco_contacts, traced_contacts
from physics.trace.emit_numpy import _Numpy
from tests.physics.oracle import collect, evaluate

GEOMS = {
  PLANE: 'type="plane" size="1 1 1"',
  HFIELD: 'type="hfield" hfield="ground"',
  SPHERE: 'type="sphere" size="0.15"',
  CAPSULE: 'type="capsule" size="0.1 0.2"',
  ELLIPSOID: 'type="ellipsoid" size="0.1 0.2 0.05"',
  CYLINDER: 'type="cylinder" size="0.15 0.1"',
  BOX: 'type="box" size="0.1 0.2 0.15"',
  MESH: 'type="mesh" mesh="stone"',
}
STONE = " ".join(f"{x:.3f}" for x in np.random.default_rng(0).normal(scale=0.1, size=60))
HILLS = " ".join(f"{x:.2f}" for x in np.random.default_rng(1).uniform(size=30))
ROLES = {  # which of the two shapes stand still, and which are free
  "both free": ((), (0, 1)),
  "first still": ((0,), (1,)),
  "second still": ((1,), (0,)),
  "two pairs": ((0,), (1, 1)),
}
# A role decides who calls a formula, whichever it is: these are compared in all, others in the first.
IN_ALL_ROLES = {(PLANE, BOX), (HFIELD, SPHERE), (SPHERE, CAPSULE), (BOX, BOX), (CYLINDER, MESH)}
GENERAL = [kinds for kinds in combinations_with_replacement(CONVEX, 2) if kinds not in NARROW]


def roles(kinds):
  """Yield the roles in which two types are compared; planes and height fields cannot move."""
  possible = [role for role, (_, free) in ROLES.items() if 0 not in free or kinds[0] not in (PLANE, HFIELD)]
  yield from possible if kinds in IN_ALL_ROLES else possible[:1]


CASES = [(kinds, role) for kinds in (*NARROW, *GENERAL) for role in roles(kinds)]
NUM_STATES = 60


def scene(still, free):
  """Return a model in which all geoms collide with the first one, and states in which they are close."""
  shared, geoms = 'margin="0.01" pos="0.05 0 0" euler="20 -10 30"', []
  for index, kind in enumerate((*still, *free)):
    geom = f'<geom {GEOMS[kind]} contype="{int(index == 0)}" {shared}/>'
    geoms.append(geom if index < len(still) else f"<body><freejoint/>{geom}</body>")
  model = load_model(f"""<mujoco>
    <option ccd_tolerance="1e-12" ccd_iterations="500"/>
    <asset><mesh name="stone" vertex="{STONE}"/>
      <hfield name="ground" nrow="5" ncol="6" size="1 1.2 0.3 0.2" elevation="{HILLS}"/></asset>
    <worldbody>{"".join(geoms)}</worldbody></mujoco>""")
  states, random = random_states(model, NUM_STATES), np.random.default_rng(2)
  poses = states.qpos.reshape(NUM_STATES, len(free), 7)
  poses[:, :, :3] = random.normal(scale=0.15, size=(NUM_STATES, len(free), 3))
  poses[:, :, 3:] = random.normal(size=(NUM_STATES, len(free), 4))
  return model, states


def tolerance(kinds):
  """Return how far [m] contacts may be from MuJoCo's, which finds some of them by iteration."""
  if kinds[0] != HFIELD:
    return 1e-9
  return 1e-6 if kinds[1] in (SPHERE, CAPSULE, BOX, MESH) else 1e-4


def name(kinds):
  return "-".join(mujoco.mjtGeom(kind).name[7:].lower() for kind in kinds)


def label(case):
  return f"{name(case[0])}, {case[1]}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_contacts_are_mujocos(case):
  kinds, role = case
  model, states = scene(*([kinds[k] for k in part] for part in ROLES[role]))
  if kinds[0] == HFIELD:  # of dozens of cells
    states = states[np.arange(NUM_STATES // 6)]
  expected = mujoco_contacts(model.mj, states)
  states.qpos[0] = np.nan
  found, expected[0] = traced_contacts(model, states), expected[0][:0]
  if kinds not in GENERAL:
    assert len(found[0]) == 0, "what is not a number touches nothing"
  assert sum(map(len, expected)) > 10
  errors = contact_errors(found, expected, 0.0)
  if kinds in GENERAL:
    assert_mostly_close(errors)
    return
  distance, position, normal = errors.max(axis=1)
  assert max(distance, position) < tolerance(kinds)
  assert normal < 100 * tolerance(kinds)


def assert_mostly_close(errors):
  """Allow what MuJoCo leaves open: which four of more corners are contacts, which side of a cylinder touches.

  On round surfaces both searches end at the numbers of steps that they may take.
  """
  far = (errors > np.array([[1e-5], [1e-4], [1e-3]])).any(axis=0)
  assert far.sum() <= 3
  assert np.isinf(errors[0]).sum() <= 1


def test_types_in_their_order_choose_the_narrow_phase():
  model, _ = scene([SPHERE], [BOX])
  (pair,) = model.pairs
  assert narrow_phase(model, pair) is NARROW[SPHERE, BOX]
  assert narrow_phase(model, pair).most == 1
  assert asset(model, pair.geom1) is None


def test_a_pair_that_has_no_formula_is_searched():
  model, _ = scene([SPHERE], [MESH])
  assert narrow_phase(model, model.pairs[0]) is ONE_POINT
  model, _ = scene([BOX], [MESH])
  (pair,) = model.pairs
  assert narrow_phase(model, pair) is FACES
  assert narrow_phase(dataclasses.replace(model, multiccd=False), pair) is ONE_POINT


def test_planes_and_height_fields_do_not_meet():
  assert not can_collide(PLANE, HFIELD)
  assert can_collide(HFIELD, MESH)
  assert can_collide(MESH, MESH)


def test_corners_of_flush_faces_are_contacts_below_the_margin_alone():
  """As MuJoCo does not let those act that it finds at the margin itself."""
  end = '<geom type="cylinder" size="0.25 0.25" euler="0 90 0"/>'
  turning = f'<body pos="0.5 0 0"><joint axis="1 0 0"/>{end}</body>'
  model = load_model(f'<mujoco><worldbody><body euler="20 20 20">{end}{turning}</body></worldbody></mujoco>')
  rows = np.concatenate(traced_contacts(model, random_states(model, 64)))
  assert len(rows) > 20
  assert (rows[:, DISTANCE] < rows[:, MARGIN]).all()


# One formula searches for all convex shapes in the cells of a field, one for those against each other.
LANES = [
  kinds
  for kinds in (*NARROW, GENERAL[0], (BOX, MESH))
  if kinds not in {(HFIELD, ELLIPSOID), (HFIELD, CYLINDER)}
]


@pytest.mark.parametrize("kinds", LANES, ids=name)
def test_lanes_without_a_contact_have_finite_numbers(kinds, monkeypatch):
  """Their weight is zero, which does not help against a nan that a neighbour's contact left in memory."""
  lines = _Numpy.lines
  monkeypatch.setattr(_Numpy, "lines", lambda writer: poisoned(lines, writer))
  model, states = scene(*([kind] for kind in kinds))
  states.qpos[::2, 2] += 2.0  # others touch

  def traced(program, *qpos):
    p = poses(model, list(qpos))
    found = find_world_contacts(program, model, p, [1])

    def describe(entry):
      return [entry["weight"], entry["distance"], *entry.vector("normal"), *entry.vector("point")]

    return collect(program, found, describe, 8)

  entries = evaluate(traced, *states.qpos.T).reshape(-1, 8, NUM_STATES)
  assert (entries[:, 0] > 0).sum() > 10
  assert np.isfinite(entries).all()


def poisoned(lines, writer):
  """Yield the lines of a program's text, with memory as nan before its first use instead of zero."""
  seen = set()
  for line in lines(writer):
    name, *_ = line.strip().split(" = [full] *")
    yield line if name in seen else line.replace("= [full] *", "= [full * np.nan] *")
    seen.add(name)
