"""The tracer: what folds, what is shared, what is read again, and plain numbers in place of traced ones."""

import math
import operator

import numpy as np
import pytest

from physics.trace import trace
from physics.trace.statement import walk
from physics.trace.trace import (
  Index,
  Mask,
  Parameter,
  Program,
  Scalar,
  Word,
  has_bit,
  maximum,
  minimum,
  negate,
  power,
  where,
)
from tests.physics.oracle import evaluate

X = np.array([-1.5, 0.25, 2.0, 3.0])
Y = np.array([0.5, -2.0, 2.0, 1.0])


@pytest.fixture
def program():
  return Program()


@pytest.fixture
def x(program):
  return program.read_memory("state", 0)


def ops(program):
  return [statement.op for statement in walk(program.body) if statement.kind == "op"]


@pytest.mark.parametrize("zero", [0, 0.0, np.float64(0.0)])
def test_neutral_elements_fold(program, x, zero):
  one = zero + 1
  assert all(value is x for value in (x + zero, zero + x, x - zero, x * one, one * x, x / one))
  assert [x * zero, zero * x, zero / x, x - x] == [0.0] * 4
  assert ops(program) == []
  assert zero - x is -x
  assert x * -one is -x
  assert ops(program) == ["neg"]


def test_division_by_a_constant_multiplies(program, x):
  assert x / 4.0 is x * 0.25


def test_constant_masks_fold(program, x):
  mask = x < 1.0
  assert mask & True is mask
  assert mask | False is mask
  assert (True & mask) is mask
  assert (mask & False, False & mask, mask | True, True | mask) == (False, False, True, True)
  assert where(mask, 2.0, 2.0) == 2.0
  assert where(True, x, 1.0) is x
  assert where(False, x, 1.0) == 1.0
  assert (negate(True), negate(False)) == (False, True)
  assert ops(program) == ["lt"]


def test_powers_with_small_integers_multiply(program, x):
  cube = power(x, 3.0)
  assert ops(program) == ["mul", "mul"]
  assert power(x, 3) is cube
  assert power(x, 1.0) is x
  for exponent in (2.5, 9.0, x):
    power(x, exponent)
  assert ops(program) == ["mul", "mul", "pow", "pow", "pow"]


def test_functions_of_plain_numbers_are_pythons():
  for name, args in (
    ("sqrt", (2.0,)),
    ("sin", (0.7,)),
    ("cos", (0.7,)),
    ("exp", (0.7,)),
    ("floor", (-0.7,)),
    ("atan2", (-1.0, -2.0)),
  ):
    assert getattr(trace, name)(*args) == getattr(math, name)(*args)
  assert (minimum(1.0, 2.0), maximum(1.0, 2.0), trace.absolute(-3.0)) == (1.0, 2.0, 3.0)
  assert [trace.clip(value, -1.0, 1.0) for value in (-2.0, 0.5, 2.0)] == [-1.0, 0.5, 1.0]
  assert (power(2.0, 3.0), power(2.0, 2.5)) == (8.0, 2.0**2.5)
  assert [has_bit(0b101, position) for position in range(3)] == [True, False, True]


def test_operators_and_functions_compute_what_they_say():
  def traced(program, x, y):
    truth = [x < y, x <= y, x > y, x >= y, (x < y) | (x > 2.5), (x < y) & (x > -1.0), ~(x < y)]
    values = [x + y, x - y, x * y, x / y, -x, 3.0 - x, 3.0 / x, minimum(x, y), maximum(0.0, x)]
    return [*values, *(where(mask, 1.0, 0.0) for mask in truth)]

  less = X < Y
  truth = [less, X <= Y, X > Y, X >= Y, less | (X > 2.5), less & (X > -1.0), ~less]
  values = [X + Y, X - Y, X * Y, X / Y, -X, 3 - X, 3 / X, np.minimum(X, Y), np.maximum(0, X)]
  np.testing.assert_array_equal(evaluate(traced, X, Y), [*values, *truth])


def test_numpy_scalars_on_the_left_leave_the_operator_to_traced_values():
  def traced(program, x):
    two = np.float64(2.0)
    results = [two + x, two - x, two * x, two / x]
    assert all(isinstance(result, Scalar) for result in results)
    masks = [two < x, two <= x, two > x, two >= x]
    assert all(isinstance(mask, Mask) for mask in masks)
    return [*results, *(where(mask, 1.0, 0.0) for mask in masks)]

  expected = [2 + X, 2 - X, 2 * X, 2 / X, X > 2, X >= 2, X < 2, X <= 2]
  np.testing.assert_array_equal(evaluate(traced, X), expected)


def test_equal_expressions_are_shared_inwards_but_not_outwards(program, x):
  outer = x * 2.0
  with program.when_any(x > 0.0):
    assert x * 2.0 is outer
    inner = x * 3.0
    assert x * 3.0 is inner
  with program.when_any(x > 0.0):
    assert x * 3.0 is not inner
  assert x * 3.0 is not inner
  assert x * 2.0 is outer


def test_what_a_skipped_block_computed_is_computed_again_outside():
  def traced(program, x):
    result = program.variable(0.0)
    with program.when_any(x > 100.0):
      result[0] = x * 3.0
    return [result[0] + x * 3.0]

  np.testing.assert_array_equal(evaluate(traced, X), [3 * X])


def test_loads_are_shared_until_a_store(program, x):
  array = program.array(2)
  array.fill([x, x])
  before = array[0]
  assert array[0] is before
  array[1] = 1.0
  assert array[0] is not before
  assert len(array) == 2


def test_a_loop_does_not_share_a_load_from_before_it():
  def traced(program, x):
    value = program.variable(x)
    before = value[0]
    with program.loop(3):
      value[0] = value[0] * 2.0
    return [before, value[0]]

  np.testing.assert_array_equal(evaluate(traced, X), [X, 8 * X])


def test_loops_read_what_the_iteration_before_stored():
  def fibonacci(program, x):
    a, b = program.variable(0.0), program.variable(x)
    with program.loop(10):
      total = a[0] + b[0]
      a[0] = b[0]
      b[0] = total
      with program.when_any(x < 0.0):
        b[0] = b[0] + 0.0 * a[0]
    return [a[0], b[0]]

  np.testing.assert_array_equal(evaluate(fibonacci, X), [55 * X, 89 * X])


def test_indices_address_arrays_and_tables():
  def traced(program, x):
    sums = program.array(6)
    with program.loop(3) as i:
      row = program.table([4, 0, 2], i)
      sums[row] = program.table([0.5, 1.5, 2.5], i) * x
      sums[row + 1] = where(x > 1.0, 1.0, 0.0)
      with program.loop(3, start=i + 1) as j, program.when_equal(j - i, 2):
        sums[row + 1] = 7.0
      with program.when_less(i * 2, 3), program.when_less(0, i):
        sums[row] = -x
    return sums.read()

  above = X > 1
  np.testing.assert_array_equal(evaluate(traced, X), [-X, above, 2.5 * X, above, 0.5 * X, 7 + 0 * X])


def test_tables_fold_where_nothing_depends_on_the_index(program, x):
  with program.loop(2) as i:
    assert program.table([1.5, 1.5], i) == 1.5
    assert program.table([3, 3], i) == 3
    assert program.table([1, 2], 1) == 2
    whole, real = program.table([1, 2], i), program.table([1.0, 2.0], i)
    assert isinstance(whole, Index)
    assert isinstance(real, Scalar)
    assert program.table((1, 2), i) is whole
  assert len(program.tables) == 2


def test_every_lane_reads_a_table_at_its_own_entry():
  entries = [2, 7, 1, 8]

  def traced(program, x):
    return [program.table(entries, x), program.table(entries, 3.0 + 0.0 * x), program.table([5, 5], x)]

  nearest = np.clip(np.round(X), 0, 3).astype(int)
  expected = [np.array(entries)[nearest], 8 + 0 * X, 5 + 0 * X]
  np.testing.assert_array_equal(evaluate(traced, np.round(X)), expected)


def test_a_lane_that_is_not_a_number_reads_the_first_entry():
  found = evaluate(lambda program, x: [program.table([2.0, 7.0], x)], [np.nan, 1.0])
  np.testing.assert_array_equal(found, [[2, 7]])


def test_a_loop_breaks_where_the_mask_holds_in_no_lane():
  def traced(program, x):
    value, rounds = program.variable(x), program.variable(0.0)
    with program.loop(100):
      program.break_if_none(value[0] < 10.0)
      value[0] = where(value[0] < 10.0, value[0] + 4.0, value[0])
      rounds[0] = rounds[0] + 1.0
    return [value[0], rounds[0]]

  np.testing.assert_array_equal(evaluate(traced, X), [X + 4 * np.ceil((10 - X) / 4), np.full(4, 3.0)])


def test_a_guard_runs_where_any_lane_needs_it():
  def traced(program, x):
    touched = program.array(3)
    for i, mask in enumerate((x > 2.5, x > 3.5, True)):
      touched[i] = 0.0
      with program.when_any(mask):
        touched[i] = 1.0
    return touched.read()

  np.testing.assert_array_equal(evaluate(traced, X), np.outer([1, 0, 1], np.ones(4)))


def test_finish_drops_what_nobody_reads(program, x):
  kept, dropped = program.variable(x), program.variable(0.0)
  dropped[0] = x * 5.0
  x + 7.0
  program.write_memory("state", 1, kept[0] * 2.0)
  assert program.finish() is program
  assert program.arrays == [kept]
  assert ops(program) == ["mul"]
  assert program.count_operations() == 1


def test_parameters_are_group_integers(program):
  parameter = program.parameter("substeps")
  assert isinstance(parameter + 1, Index)
  assert parameter + 0 is parameter
  assert parameter * 1 is parameter
  assert program.parameters == ["substeps"]


REFUSED = {  # what would have to know a number while tracing, and a word of what to write instead
  "1.0 if x < 0.0 else 2.0": "truth of a traced Mask",
  "x < 0.0 or x > 1.0": "& | ~",
  "max(x, 0.0)": "maximum",
  "np.minimum(np.array([x]), np.array([y]))": "minimum",
  "np.float64(0.0) == x": "(a <= b) & (b <= a)",
  "np.array([x, y]) == y": "(a <= b) & (b <= a)",
  "list(x)": "program.loop",
  "range(x)": "program.loop",
  "[1.0, 2.0][x]": "program.table",
  "int(x)": "integer in a traced Scalar",
  "math.sqrt(x)": "physics.trace",
  "np.array([x, y], float)": "physics.trace",
  "i if i else 0": "when_equal(a, b) and when_less(a, b)",
  "i < 3": "when_equal(a, b) and when_less(a, b)",
  "i >= i + 1": "when_equal(a, b) and when_less(a, b)",
  "range(i)": "program.loop",
}


@pytest.mark.parametrize(("asked", "instead"), REFUSED.items())
def test_what_cannot_be_traced_is_refused_with_what_to_write_instead(program, asked, instead):
  x, y = (program.read_memory("state", row) for row in range(2))
  names = {"x": x, "y": y, "i": program.parameter("count"), "np": np, "math": math}
  with pytest.raises(TypeError) as caught:
    eval(asked, names)
  message = str(caught.value)
  assert all(part in message for part in ("where(", "when_any(", instead))
  assert len(message.splitlines()) == 1


EQUAL = [pytest.param(lambda v: v == 0, id="=="), pytest.param(lambda v: v != 0, id="!=")]


@pytest.mark.parametrize("asked", [bool, iter, operator.index, float, *EQUAL])
@pytest.mark.parametrize("kind", [Scalar, Parameter, Mask, Word, Index])
def test_every_kind_of_value_refuses(program, kind, asked):
  with pytest.raises(
    TypeError, match=rf"a traced {kind.__name__} .*before the program runs; write .*where\("
  ):
    asked(kind(program, "t1"))


@pytest.mark.parametrize(
  "asked", [hash, len, abs, round, np.sqrt, math.trunc, lambda x: x**2, lambda x: x % 2]
)
def test_python_refuses_what_no_value_has(x, asked):
  with pytest.raises(TypeError):
    asked(x)


@pytest.mark.parametrize("other", [1.5, np.float64(2.0), "x"])
def test_an_index_takes_whole_numbers_alone(program, x, other):
  i, other = program.parameter("count"), x if other == "x" else other
  for combine in (operator.add, operator.sub, operator.mul):
    with pytest.raises(TypeError, match=r"takes int and Index, not \w+; write program\.table"):
      combine(i, other)


def test_an_array_ends_where_it_ends(program):
  array = program.array(3)
  array.fill([1.0, 2.0, 3.0])
  assert [value.name for value in array] == [value.name for value in array.read()]
  for index in (-1, 3):
    with pytest.raises(IndexError, match=f"{index} is not in an array of 3"):
      array[index]
    with pytest.raises(IndexError, match=f"{index} is not in an array of 3"):
      array[index] = 0.0
