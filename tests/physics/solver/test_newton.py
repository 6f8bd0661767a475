"""The solver's optimum against a search of all active sets; lanes that do not depend on each other."""

import itertools
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from physics.constraint.cone import Elliptic
from physics.constraint.joint_rows import ConstraintRow, JointRows
from physics.dynamics.articulated import welded_inertias
from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import poses
from physics.engines.numpy_engine import DERIVED, NumpySimulation
from physics.load import load_model
from physics.solver import newton
from physics.solver.newton import Bodies, Problem, solve
from physics.trace.trace import Mask, Program
from tests.physics.oracle import dense, evaluate

ENVS = 64
ROBOT = Path(__file__).parents[3] / "assets" / "quadruped" / "robot.xml"
TREE = """<mujoco><worldbody>
  <body><joint axis="0 1 0" armature="0.1"/><geom size="0.1" pos="0.3 0 0" mass="1"/>
    <body pos="0.6 0 0"><joint axis="0 1 0"/><geom size="0.1" pos="0.2 0.1 0" mass="0.5"/></body>
    <body pos="0.3 0 0.2"><joint axis="1 0 0"/><geom size="0.1" pos="0 0.3 0" mass="0.7"/>
      <body pos="0 0.5 0"><joint type="slide" axis="0 1 1"/><geom size="0.1" mass="0.4"/></body></body>
  </body></worldbody></mujoco>"""
ROWS = [
  ConstraintRow({0: 1.0}, 1.5, 0.2, -2.0, 2.0),
  ConstraintRow({3: 1.0}, 4.0, -0.5, -0.7, 0.7),
  ConstraintRow({1: 1.0}, 30.0, 1.0, low=0.0),
  ConstraintRow({2: -1.0}, 2.0, -2.0, low=0.0),
  ConstraintRow({0: 0.6, 2: -0.8, 3: 0.3}, 8.0, 0.5, low=0.0),
]
LOSSES, SIDES = slice(0, 2), slice(2, 5)
J = np.array([[row.jacobian.get(dof, 0.0) for dof in range(4)] for row in ROWS])
D, BIAS = (np.array([getattr(row, name) for row in ROWS]) for name in ("D", "bias"))
LOSS = np.array([row.high for row in ROWS[LOSSES]])


def tree_at(text, qpos):
  """Return the bodies and M of a model at a position [nq]."""
  model = load_model(text)
  p = poses(model, qpos)
  inertias = body_inertias(model, p)
  M = mass_matrix(model, p, composite_inertias(model, p, inertias))
  return Bodies(model, p, welded_inertias(model, inertias)), M


@pytest.fixture(scope="module")
def tree():
  """Return the bodies and M of a small tree."""
  return tree_at(TREE, [0.3, -0.4, 0.5, 0.1])


def searched(tree, force, start, rows=ROWS, iterations=50, other_start=()):
  """Return what the search ends at, its iterations, and if it stalled [6, env]: forces, starts [4, env]."""

  def traced(program, *numbers):
    x = program.array(4)
    x.fill(numbers[4:8])
    problem = Problem(*tree, list(numbers[:4]), JointRows(program, 4, rows), None, None)
    search = solve(program, problem, x, iterations, list(numbers[8:]))
    return [*x.read(), search.iterations[0], search.stalled[0]]

  return evaluate(traced, *force, *start, *other_start)


def solved(*args, **options):
  """Return the solution [4, env] of `searched`, and the iterations [env]."""
  found = searched(*args, **options)
  return found[:4], found[4]


def optimum(M, force):
  """Return the x at which some set of rows in action, losses at their limits included, agrees with itself."""
  for slip in itertools.product((-1, 0, 1), repeat=2):
    for acts in itertools.product((0, 1), repeat=3):
      slip_, in_action = np.array(slip), np.array([*(np.array(slip) == 0), *acts])
      H = M + J.T @ np.diag(D * in_action) @ J
      x = np.linalg.solve(H, force - J.T @ (D * in_action * BIAS) + J[LOSSES].T @ (LOSS * slip_))
      residual = J @ x + BIAS
      pulls = -D[LOSSES] * residual[LOSSES] / LOSS
      sticks = np.where(slip_ == 0, np.abs(pulls) <= 1, pulls * slip_ >= 1)
      if sticks.all() and ((residual[SIDES] < 0) == np.array(acts)).all():
        return x, (slip, acts)
  raise AssertionError("no set of rows agrees with itself")


@pytest.fixture(scope="module")
def problems(tree):
  """Return forces, starting points and the optima [4, env]."""
  random = np.random.default_rng(0)
  force, start = 8 * random.normal(size=(2, 4, ENVS))
  optima, sets = zip(*(optimum(dense(tree[1]), f) for f in force.T), strict=True)
  assert len(set(sets)) > 15
  return force, start, np.array(optima).T


@pytest.fixture
def exact(monkeypatch):
  for name in ("TOLERANCE", "STEP_TOLERANCE"):
    monkeypatch.setattr(newton, name, 1e-12)


def test_finds_the_optimum(tree, problems, exact):
  force, start, expected = problems
  found, count = solved(tree, force, start)
  np.testing.assert_allclose(found, expected, atol=1e-8)
  assert 1 <= count.min() < count.max() < 20


def test_ends_within_its_tolerance(tree, problems):
  force, start, expected = problems
  found, count = solved(tree, force, start)
  np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(expected).max())
  assert count.max() < 15


def test_starts_of_any_distance_lead_to_the_same_optimum(tree, problems, exact):
  force, start, expected = problems
  found, _ = solved(tree, force, 1e4 * start)
  np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_start_at_the_optimum_needs_no_iteration(tree, problems):
  force, _, expected = problems
  found, count = solved(tree, force, expected)
  np.testing.assert_array_equal(found, expected)
  assert not count.any()


def test_lanes_do_not_depend_on_their_neighbours(tree, problems):
  force, start, _ = problems
  together, count = solved(tree, force, start)
  for env in range(8):
    alone, rounds = solved(tree, force[:, [env]], start[:, [env]])
    np.testing.assert_array_equal(alone, together[:, [env]])
    assert rounds[0] == count[env]


@pytest.mark.parametrize(("length", "written"), [(8, True), (20, False)])
def test_only_short_branches_are_written_out(length, written):
  link = '<body pos="0.1 0 0"><joint armature="1"/><geom size="0.05"/>'
  chain = f"<mujoco><worldbody>{link * length}{'</body>' * length}</worldbody></mujoco>"
  problem = Problem(
    *tree_at(chain, [0.0] * length), [0.0] * length, JointRows(Program(), length, []), None, None
  )
  assert problem.is_branched is written


def test_without_rows_in_action_one_step_solves(tree, exact):
  force = np.random.default_rng(1).normal(size=(4, ENVS))
  found, count = solved(tree, force, np.zeros((4, ENVS)), rows=[ConstraintRow({0: 1.0}, 2.0, 1e3, low=0.0)])
  np.testing.assert_allclose(found, np.linalg.solve(dense(tree[1]), force), rtol=1e-8, atol=1e-10)
  assert (count <= 2).all()


def test_stops_after_the_given_iterations_nearer_to_the_optimum(tree, problems):
  force, start, expected = problems
  errors = []
  for iterations in (0, 1, 50):
    found, count = solved(tree, force, start, iterations=iterations)
    assert count.max() <= iterations
    errors.append(np.linalg.norm(found - expected))
  assert errors[0] > errors[1] > errors[2]
  np.testing.assert_array_equal(solved(tree, force, start, iterations=0)[0], start)


def cost(M, force, x):
  """Return the cost [env] of accelerations x [4, env], less a constant."""
  residual = J @ x + BIAS[:, None]
  pull = np.abs(D[LOSSES, None] * residual[LOSSES])
  slides = LOSS[:, None] * np.abs(residual[LOSSES]) - (LOSS**2 / D[LOSSES])[:, None] / 2
  losses = np.where(pull < LOSS[:, None], pull * np.abs(residual[LOSSES]) / 2, slides)
  sides = D[SIDES, None] * np.minimum(residual[SIDES], 0) ** 2 / 2
  return (x * (M @ x)).sum(axis=0) / 2 - (force * x).sum(axis=0) + losses.sum(axis=0) + sides.sum(axis=0)


def test_a_direction_uphill_is_reversed(tree, problems, exact, monkeypatch):
  """Rounding may turn the sign of the Hessian's last pivot, and with it that of the step."""
  newton_step = Problem.newton_step
  monkeypatch.setattr(Problem, "newton_step", lambda *args: [-d for d in newton_step(*args)])
  force, start, expected = problems
  np.testing.assert_allclose(solved(tree, force, start)[0], expected, atol=1e-8)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_no_direction_raises_the_cost(tree, problems, monkeypatch, size):
  random = np.random.default_rng(2)
  directions = lambda *_: (size * random.normal(size=4)).tolist()  # noqa: E731
  monkeypatch.setattr(Problem, "newton_step", directions)
  force, start, _ = problems
  M = dense(tree[1])
  for _ in range(20):
    found, _ = solved(tree, force, start, iterations=1)
    assert (cost(M, force, found) <= cost(M, force, start) + 1e-9).all()


def test_starts_where_the_cost_is_lower(tree, problems):
  force, start, _ = problems
  M, other = dense(tree[1]), start[:, ::-1]
  lower = cost(M, force, other) < cost(M, force, start)
  assert 10 < lower.sum() < ENVS - 10
  chosen = np.where(lower, other, start)
  np.testing.assert_array_equal(solved(tree, force, start, iterations=0, other_start=other)[0], chosen)
  from_chosen, _ = solved(tree, force, chosen, iterations=1)
  after_one, _ = solved(tree, force, start, iterations=1, other_start=other)
  np.testing.assert_allclose(after_one, from_chosen, atol=1e-9)


def test_a_search_that_finds_no_lower_cost_is_counted(tree, problems, monkeypatch):
  force, start, _ = problems
  assert not searched(tree, force, start)[5].any()
  monkeypatch.setattr(Problem, "newton_step", lambda *_: [0.0] * 4)
  found = searched(tree, force, start)
  np.testing.assert_array_equal(found[:4], start)
  np.testing.assert_array_equal(found[4:], np.ones((2, ENVS)))


class Sliding:
  """A contact that slides, begins to stick at a hundredth of the step, and slides again."""

  def growth(self, step, _searching):
    contact, residual, rate = {"D": 156.0, "ratio": 2.48}, [-8.28, 2.64, 2.49], [-7.35, -10.4, -4.88]
    return Elliptic(3).growth(contact, residual, rate, step)


def test_a_line_search_does_not_go_to_and_fro_between_its_ends():
  """Newton's step from 1 leads almost to 0, and that from there almost to 1; the minimum is at 0.2."""
  slope, curvature = -15000.0, 9000.0

  def traced(program, _):
    unsolved = program.variable(True, Mask)[0]
    return [newton._line_search(program, Sliding(), slope, curvature, unsolved)]

  ((step,),) = evaluate(traced, np.zeros(1))
  found = slope + curvature * step + Sliding().growth(float(step), True).slope
  assert abs(found) <= newton.LINE_TOLERANCE * abs(slope)


def test_kinks_that_are_much_closer_than_a_step_are_found():
  """Feet stick that are a hundred times stiffer than they press: steps of a thousandth lower the cost."""
  spec = mujoco.MjSpec.from_file(str(ROBOT))
  spec.option.cone, spec.option.impratio, spec.option.timestep = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0, 0.01
  model = load_model(spec)
  states = stumbling(model)
  simulation = NumpySimulation(model, len(states), outputs=(*DERIVED, "stalled"))
  simulation.qpos[:], simulation.qvel[:] = (torch.tensor(part) for part in np.split(states, [model.nq], 1))
  simulation.forward()
  assert not simulation.stalled.any()


def stumbling(model, count=24):
  """Return states [count, nq + nv] of a robot under random controls, in MuJoCo C."""
  data, random, states = mujoco.MjData(model.mj), np.random.default_rng(0), []
  low, high = model.actuator_ctrlrange.T
  for _ in range(count):
    mujoco.mj_resetDataKeyframe(model.mj, data, 0)
    for _ in range(20):
      data.ctrl[:] = model.mj.key_ctrl[0] + 0.3 * (high - low) / 2 * random.uniform(-1, 1, model.nu)
      mujoco.mj_step(model.mj, data, 5)
    states.append([*data.qpos, *data.qvel])
  return np.array(states)
