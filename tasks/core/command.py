"""Commands of a task: numbers that a person can give its robots while the policy acts."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, Self

from torch import Tensor


@dataclasses.dataclass
class Commands:
  """Buffer of a task's commands, with its columns' meaning; as `self.commands` it gets sliders in `play`.

  The task draws commands of its own. Others are written over them before each step.
  """

  values: Tensor  # [num_envs, number of ranges, or more]
  ranges: dict[str, tuple[float, float, str]]  # lowest and highest value and unit of each column, by name
  # What is drawn in the scene: of a velocity its first two columns, ahead and to the left of the robot, as an
  # arrow; of a position in the world its three columns, as a ball.
  shows: Literal["velocity", "position"] | None = None

  @classmethod
  def position(cls, values: Tensor, low: Sequence[float], high: Sequence[float]) -> Self:
    """Return commands of a position [num_envs, 3] between two corners [3] of a box in the world [m]."""
    corners = zip("xyz", low, high, strict=True)
    return cls(values, {axis: (least, most, "m") for axis, least, most in corners}, "position")
