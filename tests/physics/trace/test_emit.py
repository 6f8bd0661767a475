"""One program run three ways: NumPy in float64, 16 lanes of a CPU core, one lane; and the text it becomes."""

import gc
import inspect
import linecache
import re
import traceback

import numpy as np
import pytest
import warp as wp

from physics.trace import emit, emit_numpy, kernel, parts
from physics.trace.compact import GroupList, LaneList, LanePool
from physics.trace.farthest import CLUSTER, Clusters
from physics.trace.statement import walk
from physics.trace.trace import (
  Index,
  Mask,
  Program,
  absolute,
  atan2,
  cos,
  exp,
  floor,
  has_bit,
  maximum,
  minimum,
  power,
  sin,
  sqrt,
  where,
)
from physics.trace.value import Double, Long
from physics.trace.writer import INFIX

ENVS = 48  # three lane groups
INPUTS = 6
PARAMETERS = {"substeps": 3, "stride": 2, "integrate": 1}


def arithmetic(program, x):
  """Apply every operation, in an order that depends on a seed, to a pool of values that grows."""
  choose, pool = np.random.default_rng(0), list(x)
  unary = [
    sqrt,
    sin,
    cos,
    absolute,
    lambda a: -a,
    floor,
    lambda a: exp(-absolute(a)),
    lambda a: power(a, 3.0),
    lambda a: 1.5 - a,
    lambda a: a * 0.7,
  ]
  binary = [minimum, maximum, atan2, lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b]
  binary += [lambda a, b: a / (absolute(b) + 0.5), lambda a, b: where((a < b) & ~(b < 0.1), a, b)]
  binary += [lambda a, b: where((a <= b) | (b > 0.8), 1.0, b), lambda a, b: power(absolute(a), 1.3) - b]
  for function in choose.permutation(np.array(unary * 3 + binary * 3, dtype=object)):
    a, b = (pool[i] for i in choose.choice(len(pool), 2, replace=False))
    value = (
      function(absolute(a)) if function is sqrt else function(a, b) if function in binary else function(a)
    )
    pool.append(where(absolute(value) < 4.0, value, a))
  return pool[INPUTS:]


def iterate(program, x, count):
  """Halve until small, in a loop that lanes leave at different times; read tables by group and by lane."""
  value, rounds, total = program.variable(x), program.variable(0.0), program.variable(0.0)
  powers = program.array(3)  # only the second loop uses it
  with program.loop(20):
    program.break_if_none(absolute(value[0]) > 0.3)
    large = absolute(value[0]) > 0.3
    value[0], rounds[0] = where(large, 0.5 * value[0], value[0]), rounds[0] + where(large, 1.0, 0.0)
  masks = program.array(1, Mask)
  masks[0] = True
  masks[0] = masks[0] & (x > 0.2)
  with program.loop(count) as i, program.loop(4, start=i + 1) as j:
    powers.fill([1.0, x, x * x])
    total[0] = total[0] + 0.1 * powers[i]
    with program.when_less(i * 2 - j, 1):
      total[0] = total[0] + program.table([0.5, 1.25, -2.0], i) * x
    with program.when_equal(program.table([3, 1, 2], i), j), program.when_any(masks[0]):
      total[0] = where(masks[0], total[0] * 1.5, total[0])
  return [value[0], rounds[0], total[0], program.table([2.0, -1.0, 0.5, 3.0], floor(6.0 * x))]


def compact(program, x):
  """Fill both kinds of list and read them back."""
  group, lanes, ordered = GroupList(program, 3, 2), LaneList(program, 2), LaneList(program, 1, order="value")
  lanes.clear()
  ordered.clear()
  for i, value in enumerate(x[:3]):
    found = group.admit(value > -0.5)
    with program.when_any(found):
      group.push({"number": i, "value": where(found, value, 0.0), "same": 2.0})
    with program.when_any(value > -9.0):
      ordered.push(value > -9.0, {"value": value})
    with program.when_any(value < 0.5):
      lanes.push(value < 0.5, {"value": value, "bits": 1 << i, "two": 2.0 * i})
  sums = program.array(4)
  sums.fill([0.0] * 4)
  with group.each() as entry:
    sums[entry["number"]] = entry["value"] * entry["same"]
  with lanes.each() as entry:
    weight = program.table([1.0, 3.0], entry.index)
    bits = where(has_bit(entry["bits"], 0), 1.0, 0.0) + where(has_bit(entry["bits"], 2), 4.0, 0.0)
    sums[3] = sums[3] + weight * (entry["value"] + bits + entry["two"])
  with ordered.each() as entry:
    sums[0] = sums[0] + entry["value"]
  return [*sums.read(), group.dropped[0], lanes.dropped[0], ordered.dropped[0]]


def places(program, x):
  """Write to places of each lane's own, and read from them."""
  array = program.array(5)
  array.fill([float(i) for i in range(5)])
  for value in x[:3]:
    place = floor(absolute(value) * 4.99)
    array.put(place, array.take(place) + value, value > -0.5)
    with program.each_value(place, value < 0.5) as (at, lanes):
      array[at] = array[at] + where(lanes, value * value, 0.0)
  return [array.take(floor(2.0 + 4.0 * x[0])), *array.read()]


def shared(program, x):
  """Let lanes work on each other's items."""
  pool, kept, rank = LanePool(program, 3), program.array(6), program.variable(0.0)
  pool.clear()
  kept.fill([0.5] * 6)
  for value in x[:3]:
    pool.push(value > -0.2, {"value": value, "rank": rank[0], "lane": program.lane, "one": 1.0})
    rank[0] = rank[0] + where(value > -0.2, 1.0, 0.0)
  with pool.each() as item:
    place = 2.0 * item["rank"]
    kept.put(place, item["value"] * item["value"], item["one"] > 0.5, item["lane"])
    doubled = 2.0 * kept.take(place, item["lane"])
    kept.put(place + 1.0, doubled, item["one"] > 0.5, item["lane"])
  return kept.read()


POINTS = np.random.default_rng(3).uniform(-1, 1, (3, 3 * CLUSTER)).round(3)
HULLS = Clusters(
  tuple(map(tuple, POINTS.tolist())),
  tuple(float(i) for i in range(3 * CLUSTER)),
  (0, 1, 3),
  (*[(0.0,) * (3 + CLUSTER)] * 3, (2.0,) * (3 + CLUSTER)),
)


def extreme(program, x):
  """Find the farthest vertices of two hulls."""
  own = where(x[0] > 0.0, 1.0, 0.0)
  found = [program.farthest(HULLS, own, x[:3], True), program.farthest(HULLS, 1, x[3:6], x[0] > -2.0)]
  last = program.variable(0.0)
  with program.loop(2) as hull:
    last[0] = program.farthest(HULLS, hull, x[1:4], True)
  return [program.table(column, number) for number in (*found, last[0]) for column in HULLS.vertices]


def whole_language():
  """Trace a program that has every kind of statement and every operation; return it and its rows."""
  program = Program()
  substeps, stride, integrate = (program.parameter(name) for name in PARAMETERS)
  with program.loop(1):
    x = [program.read_memory("control", i) for i in range(INPUTS)]
    x[1] = program.read_memory("control", stride - 1)
    results = arithmetic(program, x) + iterate(program, x[0], substeps) + compact(program, x)
    results += places(program, x) + shared(program, x) + extreme(program, x)
    with program.when_less(0, integrate):
      for i, result in enumerate(results):
        program.write_memory("state", i, result, x[2] > -0.5)
    program.write_memory("state", len(results), 3.0, integer=True)
  return program.finish(), len(results) + 1


def run_native(program, rows, inputs, lanes, monkeypatch):
  """Compile for the CPU, run in two launches, return the state [row, env]."""
  monkeypatch.setattr(kernel, "CPU_LANES", lanes)
  step = kernel.build_kernel(program, "cpu")
  state = wp.zeros((rows, ENVS), dtype=wp.float32, device="cpu")
  control = wp.array(inputs, dtype=wp.float32, device="cpu")
  groups = ENVS // lanes
  for first, count in ((0, groups // 3), (groups // 3, groups - groups // 3)):
    arguments = [first, *PARAMETERS.values(), state, control, control]
    wp.launch(step, count, inputs=arguments, device="cpu", block_dim=1)
  return state.numpy()


@pytest.fixture
def inputs():
  return np.random.default_rng(1).uniform(-1, 1, (INPUTS, ENVS)).astype(np.float32)


@pytest.mark.parametrize(("lanes", "parted"), [(16, False), (16, True), (1, False)])
def test_native_code_computes_what_numpy_does(lanes, parted, inputs, monkeypatch):
  program, rows = whole_language()
  if parted:
    monkeypatch.setattr(parts, "FEWEST_STATEMENTS", 1)
    text = emit.native_source(program, lanes)
    assert text.count("noinline") > 5
    assert re.search(r"noinline.. {\n +T a\d+\[", text), "some part has memory of its own"
  expected = np.zeros((rows, ENVS))
  emit_numpy.numpy_function(program)(*PARAMETERS.values(), control=inputs.astype(float), state=expected)
  found = run_native(program, rows, inputs, lanes, monkeypatch)
  np.testing.assert_allclose(found[:-1], expected[:-1], rtol=0, atol=2e-5)
  np.testing.assert_array_equal(found[-1].view(np.int32), np.full(ENVS, 3))
  skipped = inputs[2] <= -0.5
  assert 0 < skipped.sum() < ENVS
  assert not found[:-1, skipped].any()
  assert (np.ptp(expected[:-1], axis=1) > 0.1).all(), "every result differs between environments"


def test_the_program_above_has_everything_that_can_be_emitted():
  program, _ = whole_language()
  statements = list(walk(program.body))
  emitted = {name.removeprefix("emit_") for name in dir(emit._Native) if name.startswith("emit_")}
  emitted |= {*emit._Native.LINES}
  at_addresses = {"fetch", "keep"}  # of test_exact.py
  assert {statement.kind for statement in statements} | at_addresses == emitted
  operations = {statement.op for statement in statements if statement.kind == "op"}
  assert operations == {*INFIX, *emit_numpy._Numpy.OPS, "neg", "bit"}
  assert {array.kind for array in program.arrays} == set(emit._CTYPE) - {Double, Long}  # no arrays' kinds


@pytest.mark.parametrize("lanes", [16, 1])
def test_sine_and_cosine_are_accurate_far_from_zero(lanes, monkeypatch):
  program = Program()
  for name in PARAMETERS:
    program.parameter(name)
  for i in range(200):
    angle = program.read_memory("control", i)
    program.write_memory("state", 2 * i, sin(angle))
    program.write_memory("state", 2 * i + 1, cos(angle))
  scale = np.geomspace(1e-3, 8000, 200)[:, None]
  angles = (scale * np.random.default_rng(0).uniform(-1, 1, (200, ENVS))).astype(np.float32)
  found = run_native(program.finish(), 400, angles, lanes, monkeypatch)
  angles = angles.astype(float)
  np.testing.assert_allclose(found[::2], np.sin(angles), rtol=0, atol=1.3e-7)
  np.testing.assert_allclose(found[1::2], np.cos(angles), rtol=0, atol=1.3e-7)


def test_loops_of_one_environment_stay_loops_where_they_are_not_to_be_unrolled():
  program, _ = whole_language()
  rolled = [line.strip() for line in emit.native_source(program, 1, unroll=False).splitlines()]
  loops = [
    number for number, line in enumerate(rolled) if line.startswith("for (int ") and "LANES" not in line
  ]
  assert len(loops) > 5
  assert {rolled[number - 1] for number in loops} == {"#pragma unroll 1"}
  free = [line for line in rolled if line != "#pragma unroll 1"]
  unrolled = [line.strip() for line in emit.native_source(program, 1).splitlines()]
  assert free == [line for line in unrolled if line != "#pragma unroll 1"]
  assert "#pragma unroll" not in emit.native_source(program, 16, unroll=False)


def test_arrays_of_nothing_have_an_element():
  """CUDA's compiler refuses others. Long models without mocap bodies have two that loops name."""
  program = Program()
  empty = program.array(0)
  with program.loop(program.parameter("count")) as i:
    program.write_memory("x", i, empty[i])
  assert f"T {empty.name}[1];" in emit.native_source(program.finish(), lanes=1)


@pytest.mark.parametrize(
  ("value", "text"),
  [
    (0.1, "0.1f"),
    (1 / 3, "0.33333334f"),
    (2.0, "2.0f"),
    (1e20, "1e+20f"),
    (-2.5e-9, "-2.5e-09f"),
    (7, "7.0f"),
  ],
)
def test_constants_are_the_shortest_float32_literals(value, text):
  program = Program()
  program.write_memory("state", 0, program.read_memory("state", 0) * value)
  assert f"* F({text});" in emit.native_source(program, 1)


def test_numpy_sees_group_integers_as_parameters():
  program = Program()
  count = program.parameter("count")
  total = program.variable(0.0)
  with program.loop(count) as i:
    assert isinstance(i, Index)
    total[0] = total[0] + program.read_memory("state", i)
  program.write_memory("state", count, total[0])
  state = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
  emit_numpy.numpy_function(program.finish())(2, state=state)
  np.testing.assert_array_equal(state[2], [4.0, 6.0])


def doubled(row):
  program = Program()
  program.write_memory("state", row, program.read_memory("state", 0) * 2.0)
  return emit_numpy.numpy_function(program.finish())


def test_tracebacks_show_the_lines_of_the_numpy_text():
  right, wrong = doubled(1), doubled(7)  # two texts, each with lines of its own
  with pytest.raises(IndexError) as caught:
    wrong(state=np.ones((2, 3)))
  shown = "".join(traceback.format_exception(caught.value))
  assert "state[7] = np.where(True, t2, state[7])" in shown
  lines = linecache.getlines(right.__code__.co_filename)
  assert lines[0] == "def run(state, **_unused):\n"
  assert lines[-1] == "  state[1] = np.where(True, t2, state[1])\n"
  linecache.checkcache()  # as tracebacks and debuggers do before they read
  assert inspect.getsource(right) == "".join(lines)


def test_the_numpy_text_stays_as_long_as_its_code():
  run = doubled(7)
  file, caught = run.__code__.co_filename, None
  try:
    run(state=np.ones((2, 3)))
  except IndexError as error:
    caught = error
  del run
  gc.collect()
  assert "state[7] = " in "".join(traceback.format_exception(caught))
  del caught
  gc.collect()
  assert file not in linecache.cache
