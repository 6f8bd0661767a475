"""Description of a robot of any kind, and a user's choices in place of detected parts."""

from dataclasses import dataclass

from physics.model.model import Floats


@dataclass(frozen=True)
class Asked:
  """A robot file with a user's choice of parts and numbers; empty or None: found automatically."""

  path: str
  joints: tuple[str, ...] = ()  # joints that move; the others are held at home
  home: str | None = None  # keyframe
  stiffness: float | None = None  # of every servo [N m/rad, N/m]
  damping: float | None = None  # of every servo [N m s/rad, N s/m]
  self_collision: bool = False  # whether links collide with each other where the file says so
  timestep: float = 0.005  # [s]
  trunk: str | None = None  # of legs: a contact of this body is a fall
  feet: tuple[str, ...] = ()  # of legs: bodies, geoms or sites
  site: str | None = None  # of an arm: site or body that reaches
  grips: bool = False  # of an arm: with its gripper, to lift a cube
  cube_size: float | None = None  # side of that cube [m]; None: from the width of the gripper


@dataclass(frozen=True)
class Robot:
  """Description of any robot for a task. Joints are in the order of the actuators."""

  path: str
  joints: tuple[str, ...]
  angles: Floats  # positions of the joints at home [nu] [rad, m]
  stance: Floats  # targets of the servos that hold them there [nu] [rad, m]
  home: str  # where the home pose is from
  mass: float  # [kg]
  stiffness: Floats  # of the servos [nu] [N m/rad, N/m]; 0: a wheel, with a servo of speed
  damping: Floats  # [nu] [N m s/rad, N s/m]
  effort: Floats  # largest force of the servos [nu] [N m, N]; inf: unlimited
  doubts: tuple[str, ...]  # sentences on possible mistakes

  def summary(self) -> str:
    """Return the description in a few lines of text."""
    angle = self.stiffness > 0
    servos = [
      f"servos{what}: stiffness {_span(self.stiffness[which])}, damping {_span(self.damping[which])}, "
      f"{_torque(_span(self.effort[which]))}"
      for what, which in (("", angle), (" of speed", ~angle))
      if which.any()
    ]
    return "\n".join([*self.parts(), *servos, *(f"doubtful: {doubt}" for doubt in self.doubts)])

  def parts(self) -> list[str]:
    """Return lines on the robot's parts."""
    raise NotImplementedError


def _torque(effort: str) -> str:
  return "torque is unlimited" if "inf" in effort else f"at most {effort} N m"


def _span(values: Floats) -> str:
  """Return the least and the greatest of some numbers, or the only one."""
  low, high = f"{values.min():.3g}", f"{values.max():.3g}"
  return low if low == high else f"{low} to {high}"
