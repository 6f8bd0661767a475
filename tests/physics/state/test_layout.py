"""Rows of the state memory."""

import mujoco
import pytest

from physics.state.layout import (
  COUNTERS,
  DEFAULT_OUTPUTS,
  STATE,
  Block,
  Layout,
  default_outputs,
  field_shapes,
)
from tests.physics.conftest import load


@pytest.fixture(scope="module")
def model():
  return load("ball_limit")


def test_blocks_fill_the_memory_in_order_state_first(model):
  layout = Layout(model, ("qM", *DEFAULT_OUTPUTS))
  assert list(layout.blocks) == [*STATE, "mask", "qM", *DEFAULT_OUTPUTS]
  row = 0
  for block in layout.blocks.values():
    assert block.start == row
    row += block.rows
  assert layout.rows == row
  assert layout.state_rows == model.nq + 2 * model.nv
  assert layout.blocks["mask"].rows == 1


def test_a_scalar_field_has_one_row():
  assert (Block(3, ()).rows, Block(3, (2, 5)).rows) == (1, 10)


def test_shapes_are_mujocos(model):
  data = mujoco.MjData(model.mj)
  for name, shape in field_shapes(model).items():
    if name in COUNTERS:
      assert shape == ()
    elif hasattr(data, name) and name not in ("qM", "time"):  # MuJoCo's is packed, and a float
      assert getattr(data, name).shape == shape, name
  assert field_shapes(model)["qM"] == (model.nv, model.nv)


@pytest.mark.parametrize("name", ["qfrc_bais", "qpos", "mask"])
def test_refuses_what_is_no_output(model, name):
  with pytest.raises(ValueError, match=f"output '{name}' is unknown; outputs are: xpos, xipos"):
    Layout(model, (name,))


def test_refuses_an_output_named_twice(model):
  with pytest.raises(ValueError, match="output 'xpos' is named twice"):
    Layout(model, ("xpos", "qacc", "xpos"))


def test_contains_names(model):
  layout = Layout(model, ("xpos",))
  assert "xpos" in layout
  assert "qpos" in layout
  assert "xquat" not in layout


def test_sensors_are_computed_where_there_are_some(model):
  assert default_outputs(model) == DEFAULT_OUTPUTS
  assert default_outputs(load("sensors")) == (*DEFAULT_OUTPUTS, "sensordata")


def test_outputs_may_say_how_time_steps_are_reduced(model):
  outputs = {"xpos": "last", "cfrc_ext": "mean"}
  assert Layout(model, outputs).outputs == outputs | dict.fromkeys(COUNTERS, "last")
  assert Layout(model, ("xpos",)).outputs["xpos"] == "last"
