"""The check of saved states."""

import pytest
import torch
from tensordict import TensorDict

from gpurobot.learn.saved_state import check_saved

OWN = {
  "count": 1,
  "part": {"weight": torch.ones(2, 3)},
  "list": [torch.ones(1)],
  "obs": TensorDict({"policy": torch.ones(4, 2)}, [4]),
}


def test_a_state_like_ones_own_is_right():
  check_saved({**OWN, "obs": {"policy": torch.zeros(4, 2)}, "more": 3}, OWN)
  check_saved({"count": 7}, OWN)  # what is missing is left to the loader
  check_saved({"part": {"weight": torch.full((2, 3), torch.nan)}}, OWN, finite=False)


@pytest.mark.parametrize(
  ("saved", "message"),
  [
    (3, "the state is a int, not a dictionary"),
    ({"count": "x"}, "count is a str, not a int"),
    ({"part": {"weight": torch.ones(2, 3).long()}}, "part.weight is of torch.int64, not torch.flo"),
    ({"list": 3}, "list is a int, not a list"),
    ({"list": [torch.ones(2)]}, r"list\[0\] has shape \[2\], not \[1\]"),
    ({"obs": {"policy": torch.ones(1, 2)}}, r"obs.policy has shape \[1, 2\], not \[4, 2\]"),
  ],
)
def test_a_state_of_other_things_is_named(saved, message):
  """Others are in `tests/mistakes/test_contents.py`."""
  with pytest.raises(ValueError, match=message):
    check_saved(saved, OWN)
