"""Sums by body on traced numbers."""

import numpy as np
import pytest

from physics.constraint.body_sums import BodySums
from physics.trace.trace import Program
from tests.physics.oracle import evaluate


def test_each_body_has_the_sum_of_what_was_added_to_it():
  def traced(program, x, y):
    sums = BodySums(program, (2, 5, 3), width=2)
    with program.loop(3) as i:
      sums.add(sums.index(program.table([3, 2, 3], i)), (x, y))
    sums.add(sums.index(5), (y, y))
    return [value for body, values in sums.read() for value in (float(body), *values)]

  found = evaluate(traced, np.array([1.0, 2.0]), np.array([10.0, 20.0]))
  expected = [2, 1, 10, 5, 10, 10, 3, 2, 20]
  np.testing.assert_array_equal(found[:, 0], expected)


def test_sums_in_memory_that_has_served_begin_at_zero():
  def traced(program, x):
    memory = program.array(6)
    first = BodySums(program, (1, 2), 3, memory)
    first.add(1, (x, x, x))
    (_, before), (_, after) = list(first.read())[1], next(BodySums(program, (1, 2), 2, memory).read())
    return [*before, *after]

  np.testing.assert_array_equal(evaluate(traced, np.array([4.0]))[:, 0], [4, 4, 4, 0, 0])


def test_a_body_without_a_sum_has_no_index():
  with pytest.raises(ValueError, match="4 is not in list"):
    BodySums(Program(), (2, 5), width=1).index(4)
