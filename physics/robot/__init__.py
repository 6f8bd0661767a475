"""Robot import: legs, arms, servos and home pose from MJCF or URDF."""

from physics.robot.arm import Arm
from physics.robot.description import Asked, Robot
from physics.robot.legged import LeggedRobot
from physics.robot.read import announce, read_robot
from physics.robot.read_arm import read_arm
from physics.robot.read_legged import read_legged

__all__ = ["Arm", "Asked", "LeggedRobot", "Robot", "announce", "read_arm", "read_legged", "read_robot"]
