"""Tasks that pass the validation; those that do not are in tests/mistakes."""

import pytest
import torch

from tasks.core.errors import TaskError
from tests.tasks.sliding import Sliding, sliding


def test_one_environment_that_diverges_is_no_mistake():
  class Bumping(Sliding):
    def initial_state(self):
      start = super().initial_state()
      start["qpos"][0, self.x] = torch.nan
      return start

  assert sliding(kind=Bumping).step(torch.zeros(4, 2))["valid"].tolist() == [False, True, True, True]


def test_names_near_those_of_the_base_are_allowed_beside_them_or_with_an_underscore():
  class Helping(Sliding):
    def rewards(self):
      return super().reward()

    def reward(self):
      return self.rewards()

    def _successes(self):
      return self.travelled

  assert sliding(kind=Helping).step(torch.zeros(4, 2))["valid"].all()
  with pytest.raises(TaskError, match=r"nothing calls successes\(\): write success\(\), or _successes\(\)"):
    type("Slip", (Sliding,), {"successes": Helping._successes})
