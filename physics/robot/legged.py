"""Description of a legged robot."""

from dataclasses import dataclass

from physics.robot.description import Robot
from physics.robot.wheel import Wheel


@dataclass(frozen=True)
class LeggedRobot(Robot):
  """Description of a robot with legs or wheels for a walking task."""

  trunk: str  # a contact of this body is a fall
  feet: tuple[str, ...]  # sites and touch sensors, with sensors `<foot>_velocity` and `<foot>_spin`
  feet_bodies: tuple[str, ...]  # body of each foot
  legs: tuple[tuple[str, ...], ...]  # joints of the leg of each foot, from the trunk on
  rolling: tuple[bool, ...]  # whether each foot is a wheel
  wheels: tuple[Wheel, ...]  # those that are driven
  quiet: tuple[str, ...]  # joints that walk best near home; for more than two legs, none
  guarded: tuple[str, ...]  # bodies other than trunk and feet that can touch the ground
  mirrored: tuple[list[int], list[int]] | None  # joint in a mirror and its sign; None: not symmetric
  phases: tuple[float, ...]  # phase of each foot in a gait of alternating steps
  soles: tuple[float, ...]  # height of the site of each foot at home [m]
  height: float  # of the trunk at home [m]
  leg_length: float  # mean height of the legs' first joints at home [m]

  @property
  def stature(self) -> float:
    """Its size [m]: the trunk's height, or that of the legs where the trunk's origin is on the ground."""
    return max(self.height, self.leg_length)

  def parts(self) -> list[str]:
    """Return lines on legs, trunk and feet."""
    legs = f"{len(self.feet)} legs" + f" on {sum(self.rolling)} wheels" * any(self.rolling)
    symmetric = "left and right mirrored" if self.mirrored else "no mirror symmetry found"
    return [
      f"{self.path}: {legs}, {len(self.joints)} joints, {self.mass:.3g} kg, {symmetric}",
      f"trunk {self.trunk}, {self.height:.3g} m high at home ({self.home}); legs of {self.leg_length:.3g} m",
      f"feet {', '.join(self.feet)}",
    ]
