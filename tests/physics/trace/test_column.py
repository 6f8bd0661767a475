"""Columns: numbers known before a loop, read inside it."""

import numpy as np

from physics.trace.column import Column
from physics.trace.trace import Program, Scalar
from tests.physics.oracle import evaluate


def read_all(program, column, order=None):
  """Return the numbers that a loop reads from a column."""
  results = program.array(len(order or column.values))
  with program.loop(len(results)) as i:
    results[i] = column[i] if order is None else column.chosen(order, i)
  return results.read()


def test_constants_and_traced_numbers_are_read_in_a_loop():
  for order, expected in ((None, [3.0, 7.0, 7.0, 5.0]), ([3, 0, 2], [5.0, 3.0, 7.0])):

    def traced(program, x, order=order):
      return read_all(program, Column(program, [3.0, x, x, 5.0]), order)

    np.testing.assert_array_equal(evaluate(traced, [7.0])[:, 0], expected)


def test_one_repeated_value_folds():
  program = Program()
  x = program.read_memory("inputs", 0)
  with program.loop(2) as i:
    assert Column(program, [4.0, 4.0])[i] == 4.0
    assert Column(program, [x, x])[i] is x
    assert Column(program, [x, 2.0, 2.0]).chosen([1, 2], i) == 2.0
    assert isinstance(Column(program, [x, 2.0])[i], Scalar)
  assert Column(program, [x, 2.0])[0] is x


def test_each_environment_reads_at_its_own_place():
  def traced(program, place, x):
    columns = [[3.0, x, x, 5.0], [1.0, 2.0, 4.0, 8.0], [x] * 4]
    return [Column(program, values)[place] for values in columns]

  found = evaluate(traced, [0.0, 1.0, 3.0], [7.0, 8.0, 9.0])
  np.testing.assert_array_equal(found, [[3, 8, 5], [1, 2, 8], [7, 8, 9]])
