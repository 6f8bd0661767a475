"""Description of a legged robot, and what a user can ask for instead of what is found."""

from dataclasses import dataclass

from physics.model.model import Floats


@dataclass(frozen=True)
class Asked:
  """A robot file, and the parts and numbers that a user gives; what is empty or None is worked out."""

  path: str
  trunk: str | None = None  # body whose contact is a fall
  feet: tuple[str, ...] = ()  # bodies, geoms or sites
  joints: tuple[str, ...] = ()  # joints that move; the others are held at home
  home: str | None = None  # keyframe
  stiffness: float | None = None  # of every servo [N m/rad, N/m]
  damping: float | None = None  # of every servo [N m s/rad, N s/m]
  self_collision: bool = False  # whether links collide with each other where the file says so
  timestep: float = 0.005  # [s]


@dataclass(frozen=True)
class LeggedRobot:
  """What a walking task has to know of a robot. Joints are in the order of the actuators."""

  path: str
  trunk: str  # body whose contact is a fall
  feet: tuple[str, ...]  # sites, touch sensors; `<foot>_velocity` is the velocity sensor of a foot
  feet_bodies: tuple[str, ...]  # body of each foot
  legs: tuple[tuple[str, ...], ...]  # joints of the leg of each foot, from the trunk on
  joints: tuple[str, ...]
  quiet: tuple[str, ...]  # joints that walk best near home; for more than two legs, none
  guarded: tuple[str, ...]  # bodies other than trunk and feet that can touch the ground
  mirrored: tuple[list[int], list[int]] | None  # joint in a mirror and its sign; None: not symmetric
  phases: tuple[float, ...]  # phase of each foot in a gait of alternating steps
  soles: tuple[float, ...]  # height of the site of each foot at home [m]
  stance: Floats  # targets of the servos at home [nu] [rad, m]
  home: str  # where the home pose is from
  height: float  # of the trunk at home [m]
  leg_length: float  # mean height of the legs' first joints at home [m]
  mass: float  # [kg]
  stiffness: Floats  # of the servos [nu] [N m/rad, N/m]
  damping: Floats  # [nu] [N m s/rad, N s/m]
  effort: Floats  # largest force of the servos [nu] [N m, N]; inf: unlimited
  doubts: tuple[str, ...]  # sentences on what may be wrong

  def summary(self) -> str:
    """Return the description in a few lines of text."""
    symmetric = "left and right mirrored" if self.mirrored else "no mirror symmetry found"
    gains = [_span(values) for values in (self.stiffness, self.damping, self.effort)]
    torque = "torque is unlimited" if "inf" in gains[2] else f"at most {gains[2]} N m"
    lines = [
      f"{self.path}: {len(self.feet)} legs, {len(self.joints)} joints, {self.mass:.3g} kg, {symmetric}",
      f"trunk {self.trunk}, {self.height:.3g} m high at home ({self.home}); legs of {self.leg_length:.3g} m",
      f"feet {', '.join(self.feet)}",
      f"servos: stiffness {gains[0]}, damping {gains[1]}, {torque}",
    ]
    return "\n".join([*lines, *(f"doubtful: {doubt}" for doubt in self.doubts)])


def _span(values: Floats) -> str:
  """Return the least and the greatest of some numbers, or the only one."""
  low, high = f"{values.min():.3g}", f"{values.max():.3g}"
  return low if low == high else f"{low} to {high}"
