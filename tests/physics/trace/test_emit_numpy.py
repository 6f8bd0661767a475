"""The NumPy text of a program: the precision of its arrays, and whole words."""

import numpy as np
import pytest

from physics.trace.compact import LaneList
from physics.trace.emit_numpy import numpy_function
from physics.trace.trace import Program, has_bit, where

ENVIRONMENTS = 4
LARGE = 2.0**24  # float32 has no digit below 1 beside it


def run(program, result, dtype=np.float32):
  """Return what a program writes [environment] for inputs of zero."""
  program.write_memory("outputs", 0, result)
  outputs = np.full((1, ENVIRONMENTS), np.nan, dtype)
  numpy_function(program.finish())(inputs=np.zeros((1, ENVIRONMENTS), dtype), outputs=outputs)
  return outputs[0]


def shared_entry(program, _x):
  found = program.variable(0.0)
  with program.loop(1) as at:
    found[0] = program.table([0.25, 0.5], at)
  return found[0]


def entry_of_each_lane(program, x):
  return program.table([0.25, 0.5], x)


def choice_of_constants(_program, x):
  return where(x < 1.0, 0.25, 0.5)


def field_of_a_list(program, x):
  lanes = LaneList(program, 2)
  lanes.clear()
  lanes.push(x < 1.0, {"value": choice_of_constants(program, x)})
  found = program.variable(0.0)
  with lanes.each() as entry:
    found[0] = found[0] + entry["value"]
  return found[0]


@pytest.mark.parametrize(
  "make", [shared_entry, entry_of_each_lane, choice_of_constants, field_of_a_list], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_every_origin_are_as_precise_as_the_arrays(make, dtype):
  program = Program()
  value = make(program, program.read_memory("inputs", 0))
  kept = 0.0 if dtype == np.float32 else 0.25
  assert run(program, (value + LARGE) - LARGE, dtype).tolist() == [kept] * ENVIRONMENTS


def test_words_keep_all_of_their_bits_in_float32():
  program = Program()
  lanes, x = LaneList(program, 2), program.read_memory("inputs", 0)
  lanes.clear()
  lanes.push(x < 1.0, {"bits": (1 << 30) | 1})
  lanes.push(x > 1.0, {"bits": 2})
  found = program.variable(0.0)
  with lanes.each() as entry:
    bits = [where(has_bit(entry["bits"], position), 1.0, 0.0) for position in (0, 1, 30)]
    found[0] = found[0] + bits[0] + 10.0 * bits[1] + 100.0 * bits[2]
  assert run(program, found[0]).tolist() == [101.0] * ENVIRONMENTS
