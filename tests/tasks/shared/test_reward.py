"""Rewards in place of all others, and tolerances."""

import math

import pytest
import torch
from dm_control.utils import rewards

from tasks.shared import reward
from tasks.shared.reward import tolerance


def test_replace_silences_the_other_terms_where_asked_even_if_they_are_not_finite():
  terms = {"speed": torch.tensor([1.0, torch.nan, 3.0]), "count": torch.tensor([4, 5, 6])}
  replaced = reward.replace(terms, torch.tensor([False, True, False]), "failed")
  assert list(replaced) == ["speed", "count", "failed"]
  assert replaced["speed"].tolist() == [1.0, 0.0, 3.0]
  assert replaced["count"].tolist() == [4.0, 0.0, 6.0]
  assert replaced["failed"].tolist() == [0.0, 1.0, 0.0]


def test_replace_takes_a_value_where_asked_alone():
  value = torch.tensor([torch.nan, 0.5, 2.0])
  replaced = reward.replace({"speed": torch.ones(3)}, torch.tensor([False, True, False]), "stacked", value)
  assert replaced["speed"].tolist() == [1.0, 0.0, 1.0]
  assert replaced["stacked"].tolist() == [0.0, 0.5, 0.0]


SHAPES = ("gaussian", "linear", "quadratic", "long_tail", "reciprocal")


@pytest.mark.parametrize("shape", SHAPES)
def test_tolerances_are_dm_control_s(shape):
  x = torch.linspace(-5.0, 5.0, 101, dtype=torch.float64)
  for low, high, margin, at_margin in (
    (0.0, 0.0, 1.0, 0.1),
    (-1.0, 0.5, 2.0, 0.3),
    (1.0, math.inf, 0.5, 0.5),
  ):
    expected = rewards.tolerance(x.numpy(), (low, high), margin, shape, at_margin)
    torch.testing.assert_close(tolerance(x, low, high, margin, shape, at_margin), torch.from_numpy(expected))


def test_without_a_margin_a_tolerance_is_zero_or_one():
  assert tolerance(torch.tensor([0.9, 1.0, 2.0, 2.1]), 1.0, 2.0).tolist() == [0.0, 1.0, 1.0, 0.0]
