"""State that Python keeps in objects: found by path, without what cannot or need not be compared."""

import copy
from types import SimpleNamespace

import pytest
import torch

from gpurobot.device.python_state import DEPTH, difference, python_state


def make() -> SimpleNamespace:
  inner = SimpleNamespace(names=["a", "b"], ratio=float("nan"), kinds={1}, call=len, tensor=torch.ones(2))
  inner.outer = inner  # a circle
  return SimpleNamespace(count=1, inner=inner, table={"x": (2, None)})


def test_numbers_and_texts_are_found_by_path():
  assert python_state({"env": make()}) == {
    "env.count": 1,
    "env.inner.names[0]": "a",
    "env.inner.names[1]": "b",
    "env.inner.ratio": pytest.approx(float("nan"), nan_ok=True),
    "env.inner.kinds[1]": 1,
    "env.table['x'][0]": 2,
    "env.table['x'][1]": None,
  }


def test_what_is_deep_is_left_out():
  value: object = 1
  for _ in range(DEPTH):
    value = [value]
  assert list(python_state({"a": value}).values()) == [1]
  assert python_state({"a": [value]}) == {}


@pytest.mark.parametrize(
  ("change", "path"),
  [
    (lambda own: own.count, ""),
    (lambda own: own.inner.tensor.add_(1), ""),
    (lambda own: setattr(own, "count", 2), "env.count"),
    (lambda own: own.inner.names.append("c"), "env.inner.names[2]"),
    (lambda own: own.table.pop("x"), "env.table['x'][0]"),
    (lambda own: own.inner.kinds.add(3), "env.inner.kinds[3]"),
  ],
)
def test_a_change_has_a_path(change, path):
  own = make()
  before = copy.copy(python_state({"env": own}))
  change(own)
  assert difference(before, python_state({"env": own})) == path
