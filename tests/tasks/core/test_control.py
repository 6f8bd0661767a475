from types import SimpleNamespace

import numpy as np
import pytest

from tasks.core.control import control_range
from tasks.core.errors import TaskError


def robot(limited=(True, True)):
  return SimpleNamespace(
    nu=2,
    actuator_names=("push", ""),
    actuator_ctrlnum=np.array([1, 1]),
    actuator_ctrllimited=np.array(limited),
    actuator_ctrlrange=np.array([[-2.0, 4.0], [0.0, 1.0]]),
  )


def test_actions_are_spread_over_the_ranges():
  offset, factor = control_range(robot(), 2, ())
  assert (offset - factor).tolist() == [-2.0, 0.0]
  assert (offset + factor).tolist() == [4.0, 1.0]


def test_so_are_choices():
  offset, factor = control_range(robot(), 2, (3, 2))
  assert (offset + 2 * factor)[0] == 4.0
  assert (offset + factor).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("limited", "actions", "message"), [
  ((False, True), 2, "actuator push has no finite ctrlrange"),
  ((True, False), 2, "actuator 1 has no finite ctrlrange"),
  ((True, True), 3, "3 actions for 2 controls: write control()"),
])  # fmt: skip
def test_what_cannot_be_spread_is_named(limited, actions, message):
  with pytest.raises(TaskError) as error:
    control_range(robot(limited), actions, ())
  assert message in str(error.value)
