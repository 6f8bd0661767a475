"""Default map from actions to controls."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import TaskError


def control_range(model: Any, num_actions: int, choices: Sequence[int]) -> NDArray[np.float64]:
  """Return the offsets and the scale factors [2, nu] that map each action to its control.

  The interval [-1, 1] is mapped onto the control range; so are the indices of a discrete choice. Raises
  TaskError if a control has no finite range, or if the numbers of actions and controls differ.
  """
  names = np.repeat(model.actuator_names, model.actuator_ctrlnum)
  finite = model.actuator_ctrllimited & np.isfinite(model.actuator_ctrlrange).all(axis=1)
  for index, (name, bounded) in enumerate(zip(names, finite, strict=True)):
    if not bounded:
      raise TaskError(
        f"actuator {name or index} has no finite ctrlrange for the actions: give it one, or write control()"
      )
  if num_actions != model.nu:
    raise TaskError(f"{num_actions} actions for {model.nu} controls: write control()")
  low, high = model.actuator_ctrlrange.T
  if choices:
    return np.stack([low, (high - low) / np.maximum(np.subtract(choices, 1), 1)])
  return np.stack([(low + high) / 2, (high - low) / 2])
