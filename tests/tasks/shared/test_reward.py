"""A reward that stands in place of all others."""

import torch

from tasks.shared import reward


def test_replace_silences_the_other_terms_where_asked_even_if_they_are_not_finite():
  terms = {"speed": torch.tensor([1.0, torch.nan, 3.0]), "count": torch.tensor([4, 5, 6])}
  replaced = reward.replace(terms, torch.tensor([False, True, False]), "failed")
  assert list(replaced) == ["speed", "count", "failed"]
  assert replaced["speed"].tolist() == [1.0, 0.0, 3.0]
  assert replaced["count"].tolist() == [4.0, 0.0, 6.0]
  assert replaced["failed"].tolist() == [0.0, 1.0, 0.0]
