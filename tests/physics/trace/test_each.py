"""Repetition: lists that are written out and arrays in loops give the same numbers."""

import numpy as np
import pytest

from physics.trace.each import (
  Place,
  Sum,
  alike,
  entry,
  follow,
  indexed,
  inner,
  mapped,
  numbers,
  places,
  replace,
  stored,
  summed,
  weighted_square,
)
from physics.trace.emit_numpy import numpy_function
from physics.trace.statement import walk
from physics.trace.trace import Program

COUNT = 10
PARENTS = [0, 0, 1, 2, 2, 4, 4, 6, 3, 3]
MASSES = np.arange(COUNT) / 7


def run(trace, repeats):
  """Trace function(program, x [COUNT]), which returns numbers; return them and the program's loops."""
  program = Program(repeats=repeats)
  x = program.array(COUNT)
  for i in range(COUNT):
    x[i] = program.read_memory("inputs", i)
  results = [*trace(program, x.values())]
  for i, result in enumerate(results):
    program.write_memory("outputs", i, result)
  outputs = np.zeros((len(results), 2))
  program.finish()
  numpy_function(program)(inputs=np.random.default_rng(0).normal(size=(COUNT, 2)), outputs=outputs)
  return outputs, sum(statement.kind == "for" for statement in walk(program.body))


def recursion(program, x):
  total = numbers(program if program.repeats else None, COUNT)
  for i in places(program, range(1)):
    total[i] = x[i]
  for i in places(program, range(1, COUNT)):
    assert alike([0, *[5] * (COUNT - 1)], i) == 5
    total[i] = x[i] * entry(MASSES, i) + total[follow(PARENTS, i)]
  return [total[i] for i in range(COUNT)]


def vectors(program, x):
  y = mapped(lambda a, b, c: a * b + c, x, MASSES, [x[0], *[1.0] * (COUNT - 1)])
  z = stored(program if program.repeats else None, [0.5] * COUNT)
  return [
    summed(lambda a, b: a - b, y, x),
    inner(y, z),
    weighted_square(x, MASSES),
    *(y[i] for i in range(COUNT)),
  ]


def replaced(program, x):
  y = program.array(COUNT)
  replace(y, lambda a: a * a, x)
  whole, table = Sum(program), indexed(program if program.repeats else None, MASSES)
  for i in places(program, [3, 1, 4, 0, 5]):
    whole.add(y[i] * table[i])
  return [whole.total]


@pytest.mark.parametrize("trace", [recursion, vectors, replaced])
def test_loops_give_the_numbers_of_text_written_out(trace):
  (written, none), (looped, some) = (run(trace, repeats) for repeats in (False, True))
  assert (none, some > 0) == (0, True)
  np.testing.assert_allclose(looped, written, rtol=1e-12)


def test_constants_of_all_elements_fold():
  program = Program(repeats=True)
  for i in places(program, range(5)):
    assert isinstance(i, Place)
    assert follow([7] * 5, i) == 7
    assert entry([0.25] * 5, i) == 0.25
    assert entry([[1.0, 2.0]] * 5, i) == [1.0, 2.0]
    assert (i + 2).elements == [2, 3, 4, 5, 6]
  assert mapped(lambda _: 3.0, program.array(4)) == [3.0] * 4


def test_few_elements_are_written_out():
  assert list(places(Program(repeats=True), [1, 2, 3])) == [1, 2, 3]
  assert list(places(None, range(9))) == list(range(9))
