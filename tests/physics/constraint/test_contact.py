"""Contacts as the solver sees them, against MuJoCo's rows."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import dot, total
from physics.constraint.world import is_still
from physics.dynamics.kinematics import propagate
from physics.forward import detect_contacts
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.smooth import smooth_dynamics
from physics.state.state import State
from physics.trace.trace import square, where
from tests.physics.conftest import load
from tests.physics.oracle import evaluate, mujoco_at

STATES = 24
MOVED, AHEAD = 0.5, 0.25  # steps along the direction: moved before, looked ahead


class SquaredLength:
  """Takes the columns of V and sums (V^T x)^2."""

  def __init__(self, program, x):
    self.sum, self.x = program.variable(0.0), x
    self.held = program.array(len(x))
    self.held.fill(x)

  def push(self, columns):
    for column in columns:
      along = dot(column.values(), [self.x[dof] for dof in column])
      self.sum[0] = self.sum[0] + along * along

  def push_pair(self, bodies, parts, lanes):
    for column in range(len(parts[0][0])):
      terms = [
        dot([row[column] for row in rows], [self.held.take(body * 6.0 + float(k)) for k in range(6)])
        for body, rows in zip(bodies, parts, strict=True)
      ]
      self.sum[0] = self.sum[0] + where(lanes, square(total(terms)), 0.0)


def trace_contacts(model):
  """Return a function of (qpos, qvel, x, direction) that gives what world, then moving contacts say.

  For each: force [nv], what the cost grows beyond its tangent over a step, what its slope grows, its
  curvature there, its curvature here, the same by the Hessian's own form, and the count.
  """

  def traced(program, *numbers):
    ends = np.cumsum([model.nq, model.nv, model.nv])
    qpos, qvel, x, direction = (numbers[a:b] for a, b in zip([0, *ends], [*ends, None], strict=True))
    smooth = smooth_dynamics(model, State(qpos, qvel, [], [], [], [], [0.0] * model.nu))
    contacts, everywhere = detect_contacts(program, model, smooth, 16), qpos[0] < 1e9
    results = []
    for kind in contacts.kinds:
      kind.start(x)
      line = kind.aim(direction, everywhere)
      line.move(MOVED, everywhere)
      ahead, here = line.growth(AHEAD, everywhere), line.growth(0.0, everywhere)
      growth = [ahead.beyond_tangent, ahead.slope, ahead.curvature, here.curvature]
      if kind is contacts.world:
        motion = propagate(model, smooth.poses, direction)
        stiffness = kind.stiffness(everywhere)
        curvature = total((K @ motion[body]).power(motion[body]) for body, K in stiffness.items())
      else:
        columns = SquaredLength(program, direction)
        kind.push_hessian(columns, everywhere)
        curvature = columns.sum[0]
      results += [*kind.force(everywhere), *growth, curvature, kind.count()]
    return results

  return traced


def mujoco_answer(model, data, x, direction, world):
  """Return the same from MuJoCo's rows of the contacts with the world, or of the others."""
  rows, count = [], 0
  for contact in data.contact:
    if contact.efc_address >= 0 and any(is_still(model, geom) for geom in contact.geom) == world:
      rows += range(contact.efc_address, contact.efc_address + max(1, 2 * contact.dim - 2))
      count += 1
  J = np.zeros((data.nefc, model.nv))
  if mujoco.mj_isSparse(model.mj):
    mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
  else:
    J[:] = data.efc_J.reshape(J.shape)
  J, D, aref = J[rows], data.efc_D[rows], data.efc_aref[rows]
  here, rates = J @ (x + MOVED * direction) - aref, J @ direction
  ahead = here + AHEAD * rates
  costs, slopes, curvatures = (
    [D @ part(r) for r in (ahead, here)]
    for part in (
      lambda r: np.minimum(r, 0) ** 2 / 2,
      lambda r: np.minimum(r, 0) * rates,
      lambda r: (r < 0) * rates**2,
    )
  )
  growth = [costs[0] - costs[1] - AHEAD * slopes[1], slopes[0] - slopes[1], *curvatures, curvatures[1]]
  return [*(J.T @ (D * np.maximum(-here, 0))), *growth, count]


@pytest.mark.parametrize("name", ["self_contact", "free_bodies", "impedance", "margins"])
def test_forces_growth_and_curvature_are_those_of_mujocos_rows(name):
  model, random = load(name), np.random.default_rng(0)
  states = random_states(model, STATES)
  x, direction = 20 * random.normal(size=(2, STATES, model.nv))
  found = evaluate(
    trace_contacts(model), *np.concatenate([states.qpos, states.qvel, x, direction], axis=1).T
  ).T
  counts = np.zeros(2)
  for env, (qpos, qvel) in enumerate(zip(states.qpos, states.qvel, strict=True)):
    data = mujoco_at(model, qpos, qvel)
    for kind, world in enumerate((True, False)):
      expected = mujoco_answer(model, data, x[env], direction[env], world)
      scale = max(1.0, np.abs(expected).max())
      answer = found[env].reshape(2, -1)[kind]
      np.testing.assert_allclose(answer / scale, np.array(expected) / scale, atol=1e-9)
      counts[kind] += expected[-1]
  assert (counts > 3).all()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 3])
@pytest.mark.parametrize("depth", [0.05, 3e-4])
def test_a_contact_that_no_joint_moves_is_as_stiff_as_in_mujoco(cone, condim, depth):
  """The sphere is on the axis of its only hinge: MuJoCo's R is MINVAL, whatever the depth's impedance."""
  model = load_model(f"""<mujoco><option cone="{cone}"/><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 {0.1 - depth}"><joint axis="0 0 1"/><geom size="0.1" condim="{condim}"/></body>
    </worldbody></mujoco>""")
  sim, data = NumpySimulation(model, 1, ("cfrc_ext",)), mujoco.MjData(model.mj)
  sim.forward()
  mujoco.mj_forward(model.mj, data)
  mujoco.mj_rnePostConstraint(model.mj, data)
  assert data.cfrc_ext[1, 5] > 2e14
  np.testing.assert_allclose(sim.cfrc_ext[0, 1, 5], data.cfrc_ext[1, 5], rtol=1e-9)
