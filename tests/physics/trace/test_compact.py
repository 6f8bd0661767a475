"""Compacted lists: order, constants that fold, slots per lane, capacity."""

import numpy as np
import pytest

from physics.trace.compact import GroupList, LaneList, vector_fields
from physics.trace.emit import array_bytes
from physics.trace.trace import Index, Mask, Program, Scalar, Word, has_bit, where
from tests.physics.oracle import evaluate

X = np.array([-1.0, 1.0, 2.0, 3.0])


def test_a_group_list_keeps_order_and_skips_what_no_lane_needs():
  def traced(program, x):
    found = GroupList(program, 4)
    for digit, threshold in ((1, 0.0), (2, 100.0), (3, 2.5), (4, -100.0)):
      with program.when_any(x > threshold):
        found.push({"digit": digit, "value": where(x > threshold, x, 0.0)})
    number, total = program.variable(0.0), program.variable(0.0)
    digits = [float(digit) for digit in range(5)]
    with found.each() as entry:
      number[0] = number[0] * 10.0 + program.table(digits, entry["digit"])
      total[0] = total[0] * 10.0 + entry["value"]
    return [number[0], total[0]]

  one, three = np.where(X > 0, X, 0), np.where(X > 2.5, X, 0)
  np.testing.assert_array_equal(evaluate(traced, X), [np.full(4, 134), (one * 10 + three) * 10 + X])


def test_a_lane_has_no_more_than_its_share_of_a_group_list():
  def traced(program, x):
    found, total = GroupList(program, 4, share=2), program.variable(0.0)
    for threshold in (-100.0, 0.0, 1.5, 2.5):
      fits = found.admit(x > threshold)
      with program.when_any(fits):
        found.push({"value": where(fits, x, 0.0)})
    with found.each() as entry:
      total[0] = total[0] + entry["value"]
    return [total[0], found.dropped[0]]

  np.testing.assert_array_equal(evaluate(traced, X), [X * [1, 2, 2, 2], [0, 0, 1, 2]])


def test_a_group_of_one_lane_has_memory_for_its_share():
  program = Program()
  GroupList(program, 400, share=10).push({"value": program.read_memory("state", 0)})
  assert array_bytes(program, 1) < 60
  assert array_bytes(program, 2) > 2 * 4 * 400


@pytest.fixture
def group_list():
  program = Program()
  return GroupList(program, 3), program.read_memory("state", 0)


def test_equal_constants_of_all_entries_fold(group_list):
  found, x = group_list
  for body in (1, 2):
    found.push({"body": body, "kind": 5, "friction": 0.5, "weight": float(body), "x": x})
  with found.each() as entry:
    assert (entry["kind"], entry["friction"]) == (5, 0.5)
    assert isinstance(entry["body"], Index)
    assert isinstance(entry["weight"], Scalar)
    assert isinstance(entry["x"], Scalar)


@pytest.mark.parametrize("traced_first", [True, False])
def test_a_field_is_no_constant_where_one_entry_differs(group_list, traced_first):
  found, x = group_list
  for value in (x, 0.5) if traced_first else (0.5, x):
    found.push({"value": value})
  with found.each() as entry:
    assert isinstance(entry["value"], Scalar)


def test_a_written_field_is_no_constant(group_list):
  found, x = group_list
  found.push({"value": 0.5} | vector_fields(point=(1.0, 2.0, x), other=(0.0, 0.0, 0.0)))
  with found.each() as entry:
    assert entry["value"] == 0.5
    entry["value"] = 0.25
    assert isinstance(entry["value"], Scalar)
    assert entry.vector("point")[:2] == [1.0, 2.0]


def test_entries_keep_what_a_loop_writes():
  def traced(program, x):
    found = GroupList(program, 2)
    for factor in (2.0, 3.0):
      found.push({"value": factor * x})
    with found.each() as entry:
      entry["square"] = entry["value"] * entry["value"]
    total = program.variable(0.0)
    with found.each() as entry:
      total[0] = total[0] + entry["square"]
    return [total[0]]

  np.testing.assert_array_equal(evaluate(traced, X), [13 * X**2])


def lane_list(program, x, capacity):
  """Push x, 10 x, 100 x where x exceeds 0, 1, 2; return the list."""
  found = LaneList(program, capacity)
  found.clear()
  for i, factor in enumerate((1.0, 10.0, 100.0)):
    found.push(
      x > float(i), {"value": factor * x, "bits": 1 << i, "kind": 7, "present": where(x > i, 1.0, 0.0)}
    )
  return found


def contents(program, found):
  """Return for each slot the value and whether bits 0 to 2 are set, then what was dropped."""
  slots = program.array(4 * found.capacity)
  slots.fill([-1.0] * len(slots))
  with found.each() as entry:
    assert entry["kind"] == 7
    slots[entry.index * 4] = entry["value"] * entry["present"]
    for k in range(3):
      slots[entry.index * 4 + (k + 1)] = where(has_bit(entry["bits"], k), 1.0, 0.0)
  return [*slots.read(), found.dropped[0]]


def test_lanes_fill_their_own_slots():
  def traced(program, x):
    return contents(program, lane_list(program, x, 4))

  empty, unused = [0, 0, 0, 0], [-1, -1, -1, -1]
  expected = [
    [*empty, *empty, *empty, *unused, 0],
    [1, 1, 0, 0, *empty, *empty, *unused, 0],
    [2, 1, 0, 0, 20, 0, 1, 0, *empty, *unused, 0],
    [3, 1, 0, 0, 30, 0, 1, 0, 300, 0, 0, 1, *unused, 0],
  ]
  np.testing.assert_array_equal(evaluate(traced, X).T, expected)


def test_a_slot_belongs_to_different_pushes_in_different_lanes():
  def traced(program, x):
    found = LaneList(program, 2)
    found.clear()
    found.push(x > 1.5, {"kind": 7, "value": x, "bits": 1, "present": 1.0})
    found.push(x < 1.5, {"kind": 7, "value": -x, "bits": 2, "present": 1.0})
    return contents(program, found)

  expected = [[1, 0, 1, 0], [-1, 0, 1, 0], [2, 1, 0, 0], [3, 1, 0, 0]]
  np.testing.assert_array_equal(evaluate(traced, X)[:4].T, expected)


def test_what_finds_no_slot_is_counted():
  def traced(program, x):
    return contents(program, lane_list(program, x, 1))

  expected = [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [2, 1, 0, 0, 1], [3, 1, 0, 0, 2]]
  np.testing.assert_array_equal(evaluate(traced, X).T, expected)


@pytest.mark.parametrize("numbers", [(3, 1, 2, 0), (0, 1, 2, 3), (2, 3, 1, 5), (5, 4, 3, 2)])
def test_the_greatest_gives_way_where_an_order_is_given(numbers):
  def traced(program, x):
    found = LaneList(program, 2, order="depth")
    found.clear()
    for i, number in enumerate(numbers):
      same = {"bits": i, "kind": 7, "present": 1.0}
      found.push(x > 0.5, same | {"depth": x * float(number), "value": x * float(i)})
    return contents(program, found)

  found = evaluate(traced, X).T
  kept = sorted(range(4), key=lambda i: (numbers[i], i))[:2]
  assert not found[0].any()
  for env, x in enumerate(X[1:], start=1):
    assert sorted(found[env, [0, 4]]) == sorted(x * i for i in kept)
    assert found[env, -1] == 2


def test_clear_empties_the_slots():
  def traced(program, x):
    found = lane_list(program, x, 3)
    found.clear()
    found.push(x < 0.0, {"value": x, "bits": 4, "kind": 7, "present": where(x < 0.0, 1.0, 0.0)})
    return contents(program, found)

  expected = [[-1, 0, 0, 1], [0] * 4, [0] * 4, [0] * 4]
  np.testing.assert_array_equal(evaluate(traced, X)[:4].T, expected)
  np.testing.assert_array_equal(evaluate(traced, X)[4:12], np.full((8, 4), -1))


def test_whole_numbers_are_words_and_a_push_outdates_loads():
  program = Program()
  mask = program.read_memory("state", 0) > 0.0
  found = LaneList(program, 2)
  found.clear()
  found.push(mask, {"bits": 3, "value": 1.5})
  size = found.size[0]
  found.push(mask, {"bits": 4, "value": 2.5})
  assert isinstance(mask, Mask)
  assert (found.fields["bits"].kind, found.fields["value"].kind) == (Word, Scalar)
  assert found.size[0] is not size
