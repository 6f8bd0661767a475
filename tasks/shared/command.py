"""Random velocity commands for walking robots."""

from collections.abc import Sequence

from torch import Tensor

from tasks.base import Task


class VelocityCommands:
  """Distribution of velocity commands: forward, to the left [m/s] and yaw rate to the left [rad/s]."""

  def __init__(self, task: Task, most: Sequence[float], standing: float) -> None:
    """Draw each component in [-most, most]; a fraction `standing` of the commands is zero."""
    self._random, self._most, self._standing = task.random, task.constant(most), standing

  def draw(self) -> Tensor:
    """Return commands [num_envs, 3] [m/s, m/s, rad/s]."""
    drawn = self._random.uniform("velocity command", (4,), -1.0, 1.0)
    walks = (drawn[:, 3:] + 1) / 2 >= self._standing
    return self._most * drawn[:, :3] * walks
