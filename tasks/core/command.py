"""Commands of a task, which a person can give while the policy acts, and goals, which people see."""

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
  # arrow; of a position in the world its three columns, as a goal.
  shows: Literal["velocity", "position"] | None = None

  @classmethod
  def position(cls, values: Tensor, low: Sequence[float], high: Sequence[float]) -> Self:
    """Return commands of a position [num_envs, 3] between two corners [3] of a box in the world [m]."""
    corners = zip("xyz", low, high, strict=True)
    return cls(values, {axis: (least, most, "m") for axis, least, most in corners}, "position")


@dataclasses.dataclass
class Goal:
  """Pose to reach. Viewers draw it; the physics and the cameras of policies have no part in it."""

  position: Tensor  # [num_envs, 3] [m]
  rotation: Tensor | None = None  # rotation matrices [num_envs, 3, 3]; None: upright
  # Site or body that should be there: its body, with all that it carries, is drawn translucent. None: a ball.
  frame: str | None = None


class Directed:
  """Part of a task that says what its robots should do: commands and goals."""

  commands: Commands | None = None  # what a person may command instead of the task; `setup` sets it

  def goals(self) -> Sequence[Goal]:
    """Return the poses to reach, as many in each step; the default is the position that is commanded."""
    commands = self.commands
    return [Goal(commands.values)] if commands and commands.shows == "position" else []
