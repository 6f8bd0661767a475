"""Legged robots of any file: what they are made of, and models of them that are ready to learn to walk."""

from physics.robot.legged import Asked, LeggedRobot
from physics.robot.read import announce, read_robot

__all__ = ["Asked", "LeggedRobot", "announce", "read_robot"]
