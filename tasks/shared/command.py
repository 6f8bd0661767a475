"""Commands: what a robot is told to do, drawn anew at intervals."""

from collections.abc import Sequence

from torch import Tensor

from tasks.base import Task


class VelocityCommands:
  """Draws velocities to walk at: forward, to the left [m/s] and turning to the left [rad/s]."""

  def __init__(self, task: Task, most: Sequence[float], standing: float) -> None:
    """Draw each of the three in [-most, most]; a share `standing` of the commands is to stand still."""
    self._random, self._most, self._standing = task.random, task.constant(most), standing

  def draw(self) -> Tensor:
    """Return commands [num_envs, 3]."""
    drawn = self._random.uniform("velocity command", (4,), -1.0, 1.0)
    walks = (drawn[:, 3:] + 1) / 2 >= self._standing
    return self._most * drawn[:, :3] * walks
