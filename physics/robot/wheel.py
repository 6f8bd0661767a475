"""Wheels of a robot: those that stand on the ground and are driven, with servos of their speed."""

from typing import NamedTuple

import numpy as np

from physics.robot.feet import TOUCH, Leg
from physics.robot.skeleton import Skeleton

PICKUP = 0.05  # time in which wheels take the robot to their speed, to 1 - 1/e [s]


class Wheel(NamedTuple):
  """A driven wheel."""

  joint: str
  radius: float  # [m]
  arm: float  # level distance from the trunk's origin at home [m]


def wheels_of(skeleton: Skeleton, legs: list[Leg], path: str) -> dict[int, Wheel]:
  """Return the driven wheels of legs by joint; raise ValueError if the trunk is on the ground beside them."""
  found, lowest, data = dict[int, Wheel](), skeleton.lowest(), skeleton.data
  for leg in (leg for leg in legs if leg.wheel in skeleton.joints):
    axle = data.xanchor[leg.wheel]
    if lowest.get(skeleton.root, np.inf) < min(lowest.values()) + TOUCH * axle[2]:
      raise ValueError(f"{path}: its trunk touches the ground, which is a fall: give casters joints")
    arm = float(np.linalg.norm((axle - data.xpos[skeleton.root])[:2]))
    found[leg.wheel] = Wheel(skeleton.joint_name(leg.wheel), float(axle[2] - lowest[leg.body]), arm)
  return found


def turning(wheels: dict[int, Wheel], mass: float) -> dict[int, float]:
  """Return the damping [N m s/rad] by joint with which wheels move a robot of some mass [kg]."""
  return {joint: mass * wheel.radius**2 / (len(wheels) * PICKUP) for joint, wheel in wheels.items()}
