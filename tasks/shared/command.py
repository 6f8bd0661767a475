"""Random velocity commands for walking robots."""

from collections.abc import Sequence

from torch import Tensor

from tasks.base import Commands, Task

UNITS = {"forward": "m/s", "sideways": "m/s", "turn": "rad/s"}  # of the components, in order


class VelocityCommands(Commands):
  """Distribution of velocity commands: forward, to the left [m/s] and yaw rate to the left [rad/s]."""

  def __init__(self, task: Task, values: Tensor, most: Sequence[float], standing: float) -> None:
    """Draw each component in [-most, most]; a fraction `standing` of the commands is zero.

    values [num_envs, 3]: the task's buffer of present commands.
    """
    limits = zip(UNITS.items(), most, strict=True)
    ranges = {name: (-limit, limit, unit) for (name, unit), limit in limits}
    super().__init__(values, ranges, shows="velocity")
    self._random, self._most, self._standing = task.random, task.constant(most), standing

  def draw(self) -> Tensor:
    """Return commands [num_envs, 3] [m/s, m/s, rad/s]."""
    drawn = self._random.uniform("velocity command", (4,), -1.0, 1.0)
    walks = (drawn[:, 3:] + 1) / 2 >= self._standing
    return self._most * drawn[:, :3] * walks
