"""Rays at scenes, against mj_ray."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import AXES, ZERO, Vector
from physics.dynamics.kinematics import poses
from physics.load import load_model
from physics.parity import random_states
from physics.ray.scene import GROUPS, Scene, visible_geoms
from tests.physics.oracle import evaluate, mujoco_at
from tests.physics.ray.test_ray import rays

ELEVATION = " ".join(f"{x:.3f}" for x in np.random.default_rng(1).uniform(size=30))
CORNERS = " ".join(f"{x:.3f}" for x in np.random.default_rng(2).normal(size=60) * 0.4)
ASSET = f"""<asset><mesh name="m" vertex="{CORNERS}"/>
  <hfield name="h" nrow="5" ncol="6" size="0.8 0.6 0.5 0.3" elevation="{ELEVATION}"/></asset>"""
SCENE = f"""<mujoco>{ASSET}<asset><material name="glass" rgba="1 1 1 0"/></asset>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
  <geom type="plane" size="0 0 1" pos="0 0 -1"/><geom type="hfield" hfield="h" pos="1 1 -1" group="2"/>
  <geom size="0.3" pos="-1 0 0" material="glass"/><geom size="0.2" pos="-1 1 0" rgba="1 0 0 0"/>
  <body name="cart" pos="0 0 0.3"><freejoint/>
    <geom type="box" size="0.2 0.3 0.1"/><geom size="0.1" pos="0 0 0.2"/>
    <body pos="0.4 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0.1" group="1"/>
      <geom type="mesh" mesh="m" pos="0 0 0.5" group="9"/></body></body>
  <body pos="1 -1 0"><freejoint/><geom size="0.3"/><geom type="capsule" size="0.1 0.4"/></body>
</worldbody></mujoco>"""


def expected(data, ray, rules):
  """Return mj_ray's distance; the rules are groups, static, excluded body."""
  groups, static, exclude = rules
  flags = None if groups is None else np.isin(np.arange(GROUPS), groups).astype(np.uint8)
  return mujoco.mj_ray(data.model, data, *ray, flags, static, exclude, np.zeros(1, np.int32))


@pytest.mark.parametrize("rules", [(None, 1, -1), ((0, 1), 1, 1), (None, 0, 1), ((2, 5), 1, -1)])
def test_a_scene_is_met_as_by_mj_ray(rules):
  """Groups, static geoms and an excluded body; the bodies are elsewhere in every environment."""
  model, count = load_model(SCENE), 150
  groups, static, exclude = rules
  states = random_states(model, count)
  origin, direction = rays(count)

  def traced(program, *x):
    p = poses(model, list(x[6:]))
    base = p.origin[model.body_id("cart")]
    geoms = visible_geoms(model, groups, bool(static), exclude)
    return [Scene(program, model, p, geoms, base).distance(Vector(*x[:3]) - base, Vector(*x[3:6]))]

  (found,) = evaluate(traced, *origin.T, *direction.T, *states.qpos.T)
  for i in range(count):
    wanted = expected(mujoco_at(model, states.qpos[i]), (origin[i], direction[i]), rules)
    assert found[i] == pytest.approx(wanted, abs=1e-9)
  assert 5 < (found >= 0).sum() < count


def test_nothing_is_met_in_an_empty_scene():
  model = load_model("<mujoco/>")

  def traced(program, x):
    return [x, Scene(program, model, poses(model, []), [], ZERO).distance(Vector(x, x, x), AXES[0])]

  np.testing.assert_array_equal(evaluate(traced, [0.0, 1.0]), [[0, 1], [-1, -1]])
