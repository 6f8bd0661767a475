"""Sensors that legged robots have in common."""

from collections.abc import Sequence

from tasks.base import Sensor

AXES = ("x", "y", "z")


def legged(trunk: str, joints: Sequence[str], actions: Sequence[str]) -> dict[str, Sensor]:
  """Return the gyro, the direction of gravity, the joint encoders and the last action."""
  angles, speeds = tuple(joints), tuple(joints)
  return {
    "angular_velocity": Sensor(
      AXES, "rad/s", f"angular velocity of {trunk} in its own axes, as a gyro has it"
    ),
    "gravity": Sensor(AXES, "", f"unit vector downwards in the axes of {trunk}: (0, 0, -1) if it is upright"),
    "angles": Sensor(angles, "rad", "angle of each joint, with the zero and sign of the robot's file"),
    "speeds": Sensor(speeds, "rad/s", "speed of each joint"),
    "action": Sensor(tuple(actions), "", "the policy's last action in [-1, 1]; 0 at the start"),
  }


def velocity(trunk: str) -> Sensor:
  """Return the velocity of a trunk, which no sensor of a legged robot measures."""
  return Sensor(AXES, "m/s", f"velocity of {trunk} in its own axes; a robot needs an estimate of it")
