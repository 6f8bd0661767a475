"""The default map from actions to controls."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import TaskError


def control_range(model: Any, num_actions: int, choices: Sequence[int]) -> NDArray[np.float64]:
  """Return the offset and the factor [2, nu] from each action to its control.

  Actions in [-1, 1] are spread over each control's range, and so are the numbers of choices. Raises TaskError
  where a control has no range, or no action.
  """
  names = np.repeat(model.actuator_names, model.actuator_ctrlnum)
  for index, (name, limited) in enumerate(zip(names, model.actuator_ctrllimited, strict=True)):
    if not limited:
      raise TaskError(
        f"actuator {name or index} has no ctrlrange for the actions: give it one, or write control()"
      )
  if num_actions != model.nu:
    raise TaskError(f"{num_actions} actions for {model.nu} controls: write control()")
  low, high = model.actuator_ctrlrange.T
  if choices:
    return np.stack([low, (high - low) / np.maximum(np.subtract(choices, 1), 1)])
  return np.stack([(low + high) / 2, (high - low) / 2])
