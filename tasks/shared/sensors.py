"""Sensors that legged robots have in common."""

from collections.abc import Sequence
from typing import Any

from tasks.base import Sensor

AXES = ("x", "y", "z")
FREE = 0  # of MuJoCo's mjtJoint


def root(model: Any) -> str:
  """Return the name of the body that moves freely, in which the IMU is taken to be."""
  return str(model.body_names[model.jnt_bodyid[(model.jnt_type == FREE).argmax()]])


def legged(model: Any, joints: Sequence[str], actions: Sequence[str]) -> dict[str, Sensor]:
  """Return the gyro, the direction of gravity, the joint encoders and the last action."""
  body = root(model)
  return {
    "angular_velocity": Sensor(
      AXES, "rad/s", f"angular velocity of {body} in its own axes, as a gyro has it"
    ),
    "gravity": Sensor(AXES, "", f"unit vector downwards in the axes of {body}: (0, 0, -1) if it is upright"),
    "angles": Sensor(tuple(joints), "rad", "angle of each joint, with the zero and sign of the robot's file"),
    "speeds": Sensor(tuple(joints), "rad/s", "speed of each joint"),
    "action": Sensor(tuple(actions), "", "the policy's last action, clipped to [-1, 1]; 0 at the start"),
  }


def velocity(model: Any) -> Sensor:
  """Return the velocity of a robot, which no sensor of a robot with legs measures."""
  return Sensor(AXES, "m/s", f"velocity of {root(model)} in its own axes; a robot needs an estimate of it")
