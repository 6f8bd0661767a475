"""Statements: order, and what pruning keeps."""

from physics.trace.statement import Statement, Value, prune, walk
from physics.trace.trace import Array, Index, Program, Scalar


def values(names):
  program = Program()
  return [Value(program, name) for name in names]


def test_walk_enters_blocks_in_order():
  inner = Statement("for", "b", body=[Statement("op", "c")])
  body = [Statement("for", "a", body=[inner, Statement("op", "d")]), Statement("op", "e")]
  assert [statement.op for statement in walk(body)] == ["a", "b", "c", "d", "e"]


def test_prune_drops_chains_of_unused_definitions():
  a, b, c, d = values("abcd")
  body = [
    Statement("read", "memory", a, (0,)),
    Statement("op", "neg", b, (a,)),
    Statement("op", "neg", c, (b,)),
    Statement("table", "numbers", d, (0,)),
    Statement("write", "memory", args=(0, b)),
  ]
  assert prune(body) == set()
  assert [statement.kind for statement in body] == ["read", "op", "write"]
  assert body[1].result is b


def test_prune_drops_an_array_that_only_feeds_a_dropped_one():
  a, b = values("ab")
  body = [
    Statement("read", "memory", a, (0,)),
    Statement("store", "first", args=(0, a)),
    Statement("load", "first", b, (0,)),
    Statement("store", "second", args=(0, b)),
  ]
  assert prune(body) == set()
  assert body == []


def test_prune_enters_blocks():
  a, b, i = values("abi")
  loop = [Statement("store", "sum", args=(0, a)), Statement("op", "neg", b, (a,))]
  body = [Statement("read", "memory", a, (0,)), Statement("for", result=i, args=(0, 9), body=loop)]
  assert prune(body) == set()
  assert [statement.kind for statement in walk(body)] == ["for"]


def test_prune_keeps_what_a_block_uses_from_outside_and_later_iterations_read():
  a, b, c, i = values("abci")
  loop = [
    Statement("load", "sum", b, (0,)),
    Statement("op", "add", c, (a, b)),
    Statement("store", "sum", args=(0, c)),
  ]
  body = [Statement("read", "memory", a, (0,)), Statement("for", result=i, args=(0, 9), body=loop)]
  assert prune(body) == {"sum"}
  assert [statement.kind for statement in walk(body)] == ["read", "for", "load", "op", "store"]


def test_prune_looks_into_nested_arguments_and_keeps_a_lists_counters():
  class Lanes:
    needed = (Array(Program(), "size", 1, Index), Array(Program(), "dropped", 1, Scalar))

  a, b, mask = values(("a", "b", "mask"))
  body = [Statement("read", "memory", value, (0,)) for value in (a, mask)]
  push = Statement("push", args=(Lanes(), mask, ("x",), (a,)))
  body += [push, Statement("load", "x", b, (0,)), Statement("write", "memory", args=(0, b))]
  assert prune(body) == {"size", "dropped", "x"}
  assert [statement.kind for statement in body] == ["read", "read", "push", "load", "write"]
