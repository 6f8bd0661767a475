"""Blocks of a traced program: what is known where, and what is refused where it is not."""

import numpy as np
import pytest

from physics.trace.trace import Index, Program, Scalar, maximum
from tests.physics.oracle import evaluate


@pytest.fixture
def program():
  return Program()


@pytest.fixture
def x(program):
  return program.read_memory("state", 0)


@pytest.mark.parametrize("kind", ["when_any", "when_equal", "when_less", "for"])
def test_a_value_of_a_block_that_has_ended_is_refused(program, x, kind):
  i = program.parameter("count")
  blocks = {
    "when_any": lambda: program.when_any(x < 0.0),
    "when_equal": lambda: program.when_equal(i, 2),
    "when_less": lambda: program.when_less(i, 2),
    "for": lambda: program.loop(i),
  }
  with blocks[kind]():
    inside = x * 2.0
    with program.when_any(x < 1.0):
      assert isinstance(inside + 1.0, Scalar)
  message = f"{inside.name} was computed in a block '{kind}' that has ended; compute it before that block"
  with pytest.raises(NameError, match=message):
    inside + 1.0
  with pytest.raises(NameError, match=message):
    program.variable(inside)
  with pytest.raises(NameError, match=message), program.when_any(inside < 0.0):
    pass
  with blocks[kind](), pytest.raises(NameError, match=message):
    program.write_memory("outputs", 0, inside)


def test_an_index_ends_with_its_loop(program):
  with program.loop(3) as i:
    assert isinstance(i + 1, Index)
  with pytest.raises(NameError, match="in a block 'for' that has ended"):
    i + 2


def test_a_variable_carries_a_value_out_of_a_block():
  def traced(program, x):
    largest = program.variable(0.0)
    with program.when_any(x > 1.0):
      largest[0] = maximum(largest[0], x)
    return [largest[0]]

  np.testing.assert_array_equal(evaluate(traced, np.array([-1.5, 0.25, 2.0]))[0], [0.0, 0.25, 2.0])


def test_what_is_computed_once_is_computed_again_where_it_is_not_known(program, x):
  def doubled():
    return program.once(("doubled",), lambda: [x * 2.0])

  with program.when_any(x < 0.0):
    first = doubled()
    with program.when_any(x < -1.0):
      assert doubled() is first
  with program.when_any(x > 0.0):
    assert doubled() is not first
  outside = doubled()
  assert outside is not first
  with program.when_any(x < 0.0):
    assert doubled() is outside
