"""State that Python keeps in objects: found by path, without what cannot or need not be compared."""

import itertools
import random
from array import array
from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tensordict import TensorDict

from gpurobot.device.python_state import NEAR, difference, python_state

HISTORY: list[torch.Tensor] = []


class Counter:
  """A task that keeps its state where all of its kind share it."""

  calls = 0
  seen: ClassVar[list[torch.Tensor]] = []


class Heir(Counter):
  """A task that inherits it."""


def make() -> SimpleNamespace:
  inner = SimpleNamespace(names=["a", "b"], ratio=float("nan"), kinds={1}, call=len, tensor=torch.ones(2))
  inner.outer = inner  # a circle
  return SimpleNamespace(count=1, inner=inner, table={"x": (2, None)})


def test_numbers_and_texts_are_found_by_path():
  assert python_state({"env": make()}) == {
    "env.count": 1,
    "len(env.inner.names)": 2,
    "env.inner.names[0]": "a",
    "env.inner.names[1]": "b",
    "env.inner.ratio": pytest.approx(float("nan"), nan_ok=True),
    "len(env.inner.kinds)": 1,
    "env.inner.kinds[1]": 1,
    "len(env.table)": 1,
    "len(env.table['x'])": 2,
    "env.table['x'][0]": 2,
    "env.table['x'][1]": None,
  }


def test_what_is_deep_is_left_out():
  value: object = 1
  for _ in range(NEAR):
    value = [value]
  assert list(python_state({"a": value}, NEAR).values()) == [1] * (NEAR + 1)
  assert list(python_state({"a": [value]}, NEAR)) == ["len(a)", "len(a[0])", "len(a[0][0])"]
  assert list(python_state({"a": [value]}).values()) == [1] * (NEAR + 2)


@pytest.mark.parametrize(
  ("keep", "path"),
  [
    (lambda: setattr(Counter, "calls", Counter.calls + 1), f"{__name__}.Counter['calls']"),
    (lambda: Counter.seen.append(torch.ones(1)), f"len({__name__}.Counter['seen'])"),
    (lambda: HISTORY.append(torch.ones(1)), f"len({__name__}['HISTORY'])"),
  ],
)
def test_classes_and_their_modules_keep_state_too(keep, path):
  before = python_state({"env": Heir()})
  keep()
  assert difference(before, python_state({"env": Heir()})) == path


class Slotted:
  """An object without a `__dict__`."""

  __slots__ = ("count",)

  def __init__(self):
    self.count = 0

  def step(self):
    self.count += 1


def closure():
  count = 0

  def step():
    nonlocal count
    count += 1

  return step


def test_what_only_looks_like_state_does_no_harm():
  """Items that can be iterated once, and a type that answers for NumPy's arrays."""
  own = SimpleNamespace(obs=TensorDict({"policy": torch.ones(2)}), kind=npt.NDArray[np.float32])
  assert python_state({"env": own})["len(env.obs)"] == 1


class Counters(dict):
  count = 0


def counting(step=[0]):  # noqa: B006
  step[0] += 1
  counting.calls += 1


counting.calls = 0


@pytest.mark.parametrize(
  ("own", "change", "path"),
  [
    (make(), lambda own: own.inner.tensor.add_(1), ""),
    (make(), lambda own: setattr(own, "count", 2), "env.own.count"),
    (make(), lambda own: own.inner.names.append("c"), "len(env.own.inner.names)"),
    (make(), lambda own: own.table.pop("x"), "len(env.own.table)"),
    (make(), lambda own: own.inner.kinds.add(3), "len(env.own.inner.kinds)"),
    (
      {"b": [SimpleNamespace(count=0)]},
      lambda own: setattr(own["b"][0], "count", 1),
      "env.own['b'][0].count",
    ),
    (SimpleNamespace(count=np.int64(0)), lambda own: setattr(own, "count", np.int64(1)), "env.own.count"),
    (np.array(0), lambda own: own.__iadd__(1), "env.own"),
    (itertools.count(), next, "env.own"),
    (closure(), lambda own: own(), "env.own.count[0]"),
    (Slotted(), Slotted.step, "env.own.count"),
    (Slotted().step, lambda own: own(), "env.own.count"),
    (Counters(), lambda own: setattr(own, "count", own.count + 1), "env.own.count"),
    (partial(print, 1), lambda own: own.keywords.update(end=""), "len(env.own.keywords)"),
    (counting, lambda own: own.__defaults__[0].append(1), "len(env.own.__defaults__[0])"),
    (counting, lambda own: setattr(own, "calls", -1), "env.own.calls"),
    (random.Random(0), lambda own: own.random(), "env.own"),
    (np.random.default_rng(0), lambda own: own.random(), "env.own"),
    (np.random.RandomState(0), lambda own: own.rand(), "env.own"),
    (array("l", [0]), lambda own: own.__setitem__(0, 1), "env.own"),
    (deque([torch.ones(1)]), lambda own: own.append(torch.ones(1)), "len(env.own)"),
  ],
)
def test_what_a_step_may_count_with_is_seen(own, change, path):
  objects = {"env": SimpleNamespace(own=own)}
  before = python_state(objects)
  assert difference(before, python_state(objects)) == ""
  change(own)
  assert difference(before, python_state(objects)) == path
