"""Rows that flags disable; test_parity.py compares limits and friction loss of joints, tendons."""

import math

import pytest

from physics.constraint.rows import friction_rows, limit_rows
from physics.load import load_model
from tests.physics.oracle import mujoco_at, smooth_of


def hinge(flag="", **joint):
  attributes = " ".join(f'{name}="{value}"' for name, value in joint.items())
  return load_model(f"""<mujoco><option><flag {flag}/></option><compiler angle="radian"/><worldbody><body>
    <joint range="-0.5 0.5" {attributes}/><geom size="1"/>
  </body></worldbody></mujoco>""")


def rows_at(model, qpos):
  smooth = smooth_of(model, mujoco_at(model, [qpos]))
  return [*friction_rows(model, smooth), *limit_rows(model, smooth)]


@pytest.mark.parametrize("flag", ["limit", "frictionloss"])
def test_flags_disable_rows(flag):
  assert len(rows_at(hinge(frictionloss="1"), 0.6)) == 2
  (row,) = rows_at(hinge(frictionloss="1", flag=f'{flag}="disable"'), 0.6)
  assert (row.low, row.high) == ((0.0, math.inf) if flag == "frictionloss" else (-1.0, 1.0))
