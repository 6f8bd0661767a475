"""Rows: quantities in group memory, and what folds."""

import pytest

from physics.algebra.spatial import STILL, Motion, Vector
from physics.dynamics.bodies import LONG
from physics.load import load_model
from physics.state.layout import Layout
from physics.step import trace_step
from physics.trace.each import places
from physics.trace.rows import columns_of, filled, flattened, mapped_rows, rows, taken
from physics.trace.trace import Program, Scalar

COUNT = 6


def program_and_number():
  program = Program(repeats=True)
  return program, program.read_memory("inputs", 0)


def test_components_that_are_one_constant_everywhere_fold():
  program, x = program_and_number()
  values = rows(program, Vector, COUNT)
  for i in places(program, range(COUNT)):
    values[i] = Vector(x, 2.0, 0.0)
  for i in places(program, range(COUNT)):
    assert values[i][1:] == (2.0, 0.0)
    assert isinstance(values[i][0], Scalar)
  assert taken(values, x)[1:] == (2.0, 0.0)
  assert [column[3] for column in columns_of(program, values)][1:] == [2.0, 0.0]


def test_an_element_of_its_own_is_known_by_itself():
  program, x = program_and_number()
  values = rows(program, Vector, [Vector(1.0, x, 3.0), Vector(1.0, x, 4.0)])
  assert values[0][::2] == (1.0, 3.0)
  assert values[1][::2] == (1.0, 4.0)
  with pytest.raises(IndexError):
    values[2]


def test_sums_fold_nothing():
  program, _ = program_and_number()
  assert all(isinstance(c, Scalar) for c in filled(program, STILL, COUNT)[0].components)


def test_without_a_program_rows_are_lists():
  motions = [Motion(Vector(1.0, 0.0, 0.0), Vector(0.0, float(i), 0.0)) for i in range(3)]
  assert rows(None, Motion, motions) == motions
  assert filled(None, STILL, 2) == [STILL, STILL]
  assert mapped_rows(Motion, lambda a, b: a + b, motions, motions)[2].linear == (0.0, 4.0, 0.0)
  assert list(flattened(Program(), lambda i: motions[i].linear, 3))[1::3] == [0.0, 1.0, 2.0]


def test_a_long_model_reports_outputs_without_elements():
  links = "".join(f'<body pos="0 0 {-i - 1}"><joint/><geom size="0.1"/>' for i in range(LONG + 1))
  model = load_model(f"<mujoco><worldbody>{links}{'</body>' * (LONG + 1)}</worldbody></mujoco>")
  trace_step(model, Layout(model, ["site_xpos", "site_xmat"]))
