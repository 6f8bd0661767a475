"""Description of an arm."""

from dataclasses import dataclass

from physics.model.model import Floats
from physics.robot.description import Robot
from physics.robot.gripper import Gripper
from physics.robot.table import Table


@dataclass(frozen=True)
class Arm(Robot):
  """Description of an arm on a fixed base for a reaching task."""

  site: str  # the tip, which is brought to the targets
  tip: str  # description of the site
  held: tuple[str, ...]  # joints of the file that do not move, such as a gripper's
  limits: Floats  # of the joints, at most one turn about home [nu, 2] [rad, m]
  reach: float  # largest distance of a target from the first joint [m]
  targets: Floats  # positions of the tip that the arm can hold, above the floor [n, 3] [m]
  turns: Floats  # orientations of the tip there, rotation matrices [n, 3, 3]
  gripper: Gripper | None = None  # if it is asked for
  table: Table | None = None  # where the hand reaches a cube

  def parts(self) -> list[str]:
    """Return lines on joints, tip and workspace."""
    low, high = self.targets.min(0), self.targets.max(0)
    box = ", ".join(
      f"{axis} {a:.2g} to {b:.2g}" for axis, a, b in zip("xyz", low.tolist(), high.tolist(), strict=True)
    )
    lines = [
      f"{self.path}: an arm of {len(self.joints)} joints, {self.mass:.3g} kg, reach {self.reach:.3g} m",
      f"tip {self.tip}; home {self.home}; targets in {box} m",
      f"joints {', '.join(self.joints)}",
    ]
    lines += [f"held at home: {', '.join(self.held)}"] if self.held else []
    return lines + [part.words() for part in (self.gripper, self.table) if part]
