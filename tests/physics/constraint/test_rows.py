"""Rows of friction loss and limits on plain numbers against MuJoCo's rows."""

import math

import numpy as np
import pytest
from mujoco import mjtConstraint

from physics.constraint.rows import friction_rows, limit_rows
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import acting_rows, constraint_rows, mujoco_at, smooth_of

FRICTION = (mjtConstraint.mjCNSTR_FRICTION_DOF, mjtConstraint.mjCNSTR_FRICTION_TENDON)
LIMITS = (mjtConstraint.mjCNSTR_LIMIT_JOINT, mjtConstraint.mjCNSTR_LIMIT_TENDON)


@pytest.mark.parametrize(
  "name", ["ball_limit", "friction_loss", "direct_solref", "gymnasium/humanoid", "tendons"]
)
def test_rows_are_mujocos(name):
  """Rows that act, in order: Jacobian, D and reference acceleration."""
  model, compared = load(name), 0
  states = random_states(model, 24)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    data = mujoco_at(model, qpos, qvel)
    smooth = smooth_of(model, data)
    for rows, kinds in ((friction_rows, FRICTION), (limit_rows, LIMITS)):
      found, expected = acting_rows(model, rows(model, smooth)), constraint_rows(model, data, *kinds)
      np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
      compared += len(found)
    losses = [row.high for row in friction_rows(model, smooth)]
    np.testing.assert_array_equal(losses, data.efc_frictionloss[np.isin(data.efc_type, FRICTION)])
  assert compared > 5


def hinge(flag="", **joint):
  attributes = " ".join(f'{name}="{value}"' for name, value in joint.items())
  return load_model(f"""<mujoco><option><flag {flag}/></option><compiler angle="radian"/><worldbody><body>
    <joint range="-0.5 0.5" {attributes}/><geom size="1"/>
  </body></worldbody></mujoco>""")


def rows_at(model, qpos):
  smooth = smooth_of(model, mujoco_at(model, [qpos]))
  return [*friction_rows(model, smooth), *limit_rows(model, smooth)]


def test_narrow_ranges_have_both_limits():
  wide, narrow = hinge(margin="0.1"), hinge(margin="0.6")
  assert [len(rows_at(model, 0.2)) for model in (wide, narrow)] == [1, 2]
  below, above = rows_at(narrow, 0.2)
  assert (below.jacobian, above.jacobian) == ({0: 1.0}, {0: -1.0})
  assert below.limit == above.limit == ("joint", 0)


@pytest.mark.parametrize("flag", ["limit", "frictionloss"])
def test_flags_disable_rows(flag):
  assert len(rows_at(hinge(frictionloss="1"), 0.6)) == 2
  (row,) = rows_at(hinge(frictionloss="1", flag=f'{flag}="disable"'), 0.6)
  assert (row.low, row.high) == ((0.0, math.inf) if flag == "frictionloss" else (-1.0, 1.0))
