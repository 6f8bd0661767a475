"""Shapes of geoms and frames of contacts, against MuJoCo's."""

import pytest

from physics.algebra.spatial import Vector, cross, dot
from physics.collision.geometry import geom_bound, tangents
from physics.load import load_model


def test_the_first_tangent_is_nearest_to_the_hint():
  normal, hint = Vector(0.6, 0.0, 0.8), Vector(1.0, 2.0, 0.0)
  first, second = tangents(normal, hint)
  assert abs(dot(first, normal)) < 1e-15
  assert dot(first, first) == pytest.approx(1)
  assert dot(second, hint) == pytest.approx(0)
  assert dot(first, hint) > 0
  assert second == cross(normal, first)
  assert tangents(Vector(0.0, 0.0, 1.0), Vector(0.0, 0.0, 3.0))[0] == (1, 0, 0)


@pytest.mark.parametrize(
  "shape",
  [
    'type="sphere" size="0.3"',
    'type="capsule" size="0.1 0.2"',
    'type="ellipsoid" size="0.1 0.3 0.2"',
    'type="cylinder" size="0.1 0.2"',
    'type="box" size="0.1 0.3 0.2"',
    'type="mesh" mesh="tetrahedron"',
  ],
)
def test_bounds_are_mujocos(shape):
  model = load_model(f"""<mujoco>
    <asset><mesh name="tetrahedron" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
    <worldbody><geom {shape}/></worldbody></mujoco>""")
  assert geom_bound(model, 0) == pytest.approx(model.geom_rbound[0])
