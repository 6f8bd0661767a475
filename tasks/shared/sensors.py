"""Sensors that legged robots have in common."""

from collections.abc import Sequence
from typing import Any

from tasks.base import Sensor

AXES = ("x", "y", "z")
FREE = 0  # of MuJoCo's mjtJoint


def legged(model: Any, joints: Sequence[str], actions: Sequence[str]) -> dict[str, Sensor]:
  """Return the velocity, gyro, direction of gravity, joint encoders and last action."""
  body = model.body_names[model.jnt_bodyid[(model.jnt_type == FREE).argmax()]]  # with the IMU
  return {
    "velocity": Sensor(AXES, "m/s", f"velocity of {body} in its own axes; a robot needs an estimate of it"),
    "angular_velocity": Sensor(
      AXES, "rad/s", f"angular velocity of {body} in its own axes, as a gyro has it"
    ),
    "gravity": Sensor(AXES, "", f"unit vector downwards in the axes of {body}: (0, 0, -1) if it is upright"),
    "angles": Sensor(tuple(joints), "rad", "angle of each joint, with the zero and sign of the robot's file"),
    "speeds": Sensor(tuple(joints), "rad/s", "speed of each joint"),
    "action": Sensor(tuple(actions), "", "the policy's last action, clipped to [-1, 1]; 0 at the start"),
  }
