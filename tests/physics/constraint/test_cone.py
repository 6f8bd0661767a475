"""The costs of contacts: forces, growth and Hessians against differences of the cost itself."""

import math

import numpy as np
import pytest

from physics.constraint.cone import Elliptic, Pyramid, spring_growth

H = 1e-6
RATIO = 1.7
CONES = {f"pyramid {dim}": Pyramid(dim) for dim in (1, 3, 4, 6)} | {
  f"ellipse {dim}": Elliptic(dim) for dim in (3, 4, 6)
}


def fields(cone, condim):
  return {"D": 2.5} | cone.constants(condim, RATIO)


def cost(cone, contact, a):
  """Return a contact's cost at residuals a [dim], written down independently."""
  D = contact["D"]
  if isinstance(cone, Pyramid):
    if cone.dim == 1:
      return 0.5 * D * min(a[0], 0.0) ** 2
    shares = [contact[f"share{j}"] for j in range(1, cone.dim)]
    edges = [(share, a[0] + sign * x) for share, x in zip(shares, a[1:], strict=True) for sign in (1, -1)]
    return 0.5 * D * sum(share * min(r, 0.0) ** 2 for share, r in edges)
  mu, T = 1 / np.sqrt(contact["ratio"]), np.linalg.norm(a[1:])
  N = a[0] * mu
  if mu * T <= N:
    return 0.0
  if mu * N + T <= 0:
    return 0.5 * D * (a[0] ** 2 + contact["ratio"] * T**2)
  return 0.5 * D / (mu**2 * (1 + mu**2)) * (N - mu * T) ** 2


def residuals(dim, count=60):
  return np.random.default_rng(0).normal(size=(count, dim)) - np.eye(dim)[0] * 0.3


@pytest.mark.parametrize("name", CONES)
def test_forces_are_the_negated_gradient(name):
  cone = CONES[name]
  contact = fields(cone, cone.dim)
  for a in residuals(cone.dim):
    gradient = [
      (cost(cone, contact, a + H * e) - cost(cone, contact, a - H * e)) / (2 * H) for e in np.eye(cone.dim)
    ]
    np.testing.assert_allclose(cone.force(contact, a.tolist()), np.negative(gradient), atol=1e-8)


@pytest.mark.parametrize("name", CONES)
def test_hessian_is_the_forces_derivative_and_its_root_squared(name):
  cone = CONES[name]
  contact = fields(cone, cone.dim)
  for a in residuals(cone.dim):
    found = np.zeros((cone.dim, cone.dim))
    for (i, j), value in cone.hessian(contact, a.tolist()).items():
      found[i, j] = found[j, i] = contact["D"] * value
    expected = [
      (np.array(cone.force(contact, (a - H * e).tolist())) - cone.force(contact, (a + H * e).tolist()))
      / (2 * H)
      for e in np.eye(cone.dim)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    columns = np.array(cone.root(contact, a.tolist()))
    np.testing.assert_allclose(contact["D"] * columns.T @ columns, found, atol=1e-12)


@pytest.mark.parametrize("name", CONES)
@pytest.mark.parametrize("step", [0.0, 0.1, 1.3])
def test_growth_is_the_costs_beyond_its_tangent(name, step):
  cone = CONES[name]
  contact = fields(cone, cone.dim)
  for a, b in zip(residuals(cone.dim), residuals(cone.dim)[::-1], strict=True):
    growth, there = cone.growth(contact, a.tolist(), b.tolist(), step), a + step * b
    slope, slope_there = (-np.array(cone.force(contact, at.tolist())) @ b for at in (a, there))
    beyond = cost(cone, contact, there) - cost(cone, contact, a) - step * slope
    assert growth.beyond_tangent == pytest.approx(beyond, abs=1e-11)
    assert growth.slope == pytest.approx(slope_there - slope, abs=1e-11)
    hessian = cone.hessian(contact, there.tolist())
    full = [hessian.get((min(i, j), max(i, j)), 0.0) for i in range(cone.dim) for j in range(cone.dim)]
    curvature = contact["D"] * b @ np.reshape(full, (cone.dim, cone.dim)) @ b
    assert growth.curvature == pytest.approx(curvature, abs=1e-11)


@pytest.mark.parametrize("aside", [0.0, 1e-9])
@pytest.mark.parametrize("step", [0.9, 1.0, 1.1, 1.9])
def test_growth_where_the_direction_of_sliding_reverses(aside, step):
  """In a planar model the tangent passes through zero."""
  cone, a, b = Elliptic(3), np.array([0.2, 0.0, 0.5]), np.array([0.05, aside, -0.5])
  contact = fields(cone, 3)
  growth = cone.growth(contact, a.tolist(), b.tolist(), step)
  slope, slope_there = (-np.array(cone.force(contact, at.tolist())) @ b for at in (a, a + step * b))
  assert growth.slope == pytest.approx(slope_there - slope, abs=1e-9)
  beyond = cost(cone, contact, a + step * b) - cost(cone, contact, a) - step * slope
  assert growth.beyond_tangent == pytest.approx(beyond, abs=1e-9)


@pytest.mark.parametrize("end", [0.0, 2e13, math.inf])
def test_growth_of_a_spring_keeps_a_step_that_its_residual_would_drown(end):
  """As 1e13 + 1e-4 is 1e13, the difference of the two costs would be zero."""
  growth = spring_growth(-1e13, 1e-4, 1.0, 2.0, (-end or -math.inf, end))
  assert growth.beyond_tangent == pytest.approx(1e-8, rel=1e-6)
  assert growth.slope == pytest.approx(2e-8, rel=1e-6)
  assert growth.curvature == pytest.approx(2e-8, rel=1e-6)


@pytest.mark.parametrize("start", [-2.0, -0.5, 0.5, 2.0])
@pytest.mark.parametrize("step", [-5.0, -2.0, -0.25, 0.25, 2.0, 5.0])
def test_friction_grows_as_hubers_cost(start, step):
  def huber(r):
    return 0.5 * r * r if abs(r) < 1 else abs(r) - 0.5

  growth, slope = spring_growth(start, 1.0, step, 1.0, (-1.0, 1.0)), max(-1.0, min(start, 1.0))
  assert growth.beyond_tangent == pytest.approx(huber(start + step) - huber(start) - step * slope)
  assert growth.slope == max(-1.0, min(start + step, 1.0)) - slope
  assert growth.curvature == float(abs(start + step) < 1)


def test_all_zones_of_the_ellipse_were_met():
  cone = Elliptic(4)
  slips = [(a[0] < T, a[0] <= -RATIO * T) for a in residuals(4) for T in [np.linalg.norm(a[1:])]]
  assert {(True, True), (True, False), (False, False)} == set(slips)
  assert all(f == 0.0 for f in cone.force(fields(cone, 4), [1.0, 0.0, 0.0, 0.0]))


@pytest.mark.parametrize("condim", [1, 3, 4])
def test_a_contact_of_fewer_rows_among_others_keeps_its_own_cost(condim):
  """Its missing rows have scale zero, hence residual zero; without friction all edges share its D."""
  wide, own = Pyramid(6), Pyramid(condim)
  for a in residuals(condim):
    padded = [*a.tolist(), *[0.0] * (6 - condim)]
    scale = own.softness(condim, RATIO, 0.8) / wide.softness(condim, RATIO, 0.8)
    found = wide.force(fields(wide, condim), padded)
    expected = own.force(fields(own, condim), a.tolist())
    np.testing.assert_allclose(np.array(found[:condim]) * scale, expected, atol=1e-12)
    np.testing.assert_allclose(found[condim:], 0.0)


def test_an_ellipse_without_friction_is_a_spring():
  cone = Elliptic(3)
  contact = fields(cone, 1)
  assert cone.force(contact, [-2.0, 0.0, 0.0]) == [5.0, 0.0, 0.0]
  assert cone.force(contact, [2.0, 0.0, 0.0]) == [0.0, 0.0, 0.0]
  assert cone.softness(1, RATIO, 0.5) == 1.0
