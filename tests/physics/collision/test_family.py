"""Families of pairs: how they are sorted, and which of their pairs are looked at closely."""

import numpy as np

from physics.algebra.spatial import ZERO
from physics.collision.family import Family, Shapes, candidates, families
from physics.collision.geometry import ContactCandidate, Lost, geom_shapes
from physics.collision.narrow import Narrow
from physics.dynamics.kinematics import poses
from physics.load import load_model
from physics.trace.trace import Program
from tests.physics.oracle import evaluate

MESHES = """<mujoco>
  <default><default class="passive"><geom contype="0" type="mesh"/></default></default>
  <asset>
    <mesh name="a" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/><mesh name="b" vertex="0 0 0  2 0 0  0 1 0  0 0 1"/>
  </asset>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body><freejoint/><geom size="0.1" contype="2"/><geom class="passive" mesh="a"/></body>
    <body><freejoint/><geom class="passive" type="capsule" size="0.1 0.2"/>
      <geom class="passive" mesh="b"/></body>
    <body><freejoint/><geom class="passive" type="sphere" size="0.1" conaffinity="2"/>
      <geom class="passive" mesh="a"/></body>
  </worldbody></mujoco>"""


def test_a_family_has_one_narrow_phase_and_any_meshes():
  model = load_model(MESHES)
  sorted_pairs = {
    (family.narrow.find.__name__, tuple((q.geom1, q.geom2) for q in family.pairs))
    for family in families(model, model.pairs)
  }
  assert sorted_pairs == {
    ("plane_sphere", ((0, 1),)),
    ("plane_capsule", ((0, 3),)),
    ("plane_mesh", ((0, 2), (0, 4), (0, 6))),
    ("segments", ((1, 5),)),
  }
  (one,) = (f for f in families(model, model.pairs) if len(f.pairs) == 3)
  _, meshes = (one.narrow.assets(Program(), model, geoms) for geoms in one.geoms)
  assert [meshes(pair).hull for pair in range(3)] == [2, 3, 2]


def find(_program, _one, _two, margin):
  assert margin == 0.25
  yield ContactCandidate(True, lambda: (0.0, ZERO, ZERO))


def find_and_lose(_program, _one, _two, _margin):
  yield ContactCandidate(True, lambda: (0.0, ZERO, ZERO))
  yield Lost(2.0)


def look(program, model, qpos, narrow, dropped):
  """Yield the pairs of a model that a narrow phase looks at."""
  p = poses(model, qpos)
  origins = [p.origin[body] for body in model.geom_bodyid]
  geoms = range(model.ngeom)
  shapes = Shapes(program, geoms, geom_shapes(model, p, geoms, lambda geom: -origins[geom]))
  sides = tuple(shapes.side([getattr(pair, name) for pair in model.pairs]) for name in ("geom1", "geom2"))
  family = Family(narrow, model.pairs)
  for pair, _ in candidates(program, model, family, sides, dropped):
    yield pair


def looked_at(model, qpos):
  """Return for each pair of the model whether it is looked at in a state."""

  def traced(program, *qpos):
    seen = program.array(len(model.pairs))
    seen.fill([0.0] * len(seen))
    for pair in look(program, model, list(qpos), Narrow(find, 1), program.variable(0.0)):
      seen[pair] = 1.0
    return seen.read()

  return evaluate(traced, *qpos[:, None])[:, 0].tolist()


def balls(places, attributes="", still=""):
  body = f'<body><freejoint/><geom size="0.5" margin="0.125" {attributes}/></body>'
  model = load_model(f"<mujoco><worldbody>{still}{body * len(places)}</worldbody></mujoco>")
  return model, np.concatenate([[*place, 1.0, 0.0, 0.0, 0.0] for place in places])


def test_centres_within_reach_are_looked_at():
  model, qpos = balls([(0, 0, 0), (0, 1.2, 0), (0.1, 2.5, 0)])
  assert [(q.geom1, q.geom2) for q in model.pairs] == [(0, 1), (0, 2), (1, 2)]
  assert looked_at(model, qpos) == [1, 0, 0]


def test_all_cheap_pairs_are_looked_at_without_a_loop():
  model, qpos = balls([(0, 0, 0), (0, 1.2, 0), (0.1, 2.5, 0)])
  assert list(look(Program(), model, qpos.tolist(), Narrow(find, 1, cheap=True), None)) == [0, 1, 2]


def test_what_is_lost_is_counted():
  model, qpos = balls([(0, 0, 0), (0, 1.2, 0), (0, 2.3, 0)])

  def traced(program, *qpos):
    dropped = program.variable(1.0)
    for _ in look(program, model, list(qpos), Narrow(find_and_lose, 1), dropped):
      pass
    return [dropped[0]]

  assert evaluate(traced, *qpos[:, None]).item() == 1 + 2 * 2


def test_a_single_pair_needs_no_loop():
  for distance, near in ((1.2, 1), (1.3, 0)):
    assert looked_at(*balls([(0, 0, 0), (distance, 0, 0)])) == [near]


def test_what_is_near_a_plane_is_looked_at():
  plane = '<geom type="plane" size="1 1 1" margin="0.125" zaxis="1 0 0"/>'
  places = [(0.7, 50, 0), (0.8, 0, 0), (-9, 0, 0)]
  assert looked_at(*balls(places, 'contype="0"', plane)) == [1, 0, 1]
