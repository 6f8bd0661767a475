"""Robots that the tests of motions use, each read once."""

import functools
from dataclasses import dataclass

import physics
from tasks.base import ASSETS
from tasks.motion import settings
from tasks.shared import robot_file

HUMANOID, BIPED, DOG = (
  ASSETS / path for path in ("humanoid/servos.xml", "biped/robot.xml", "quadruped/robot.xml")
)


@dataclass
class Config(settings.Config, robot_file.LegsConfig):
  """Settings of a robot and its motions."""


@functools.cache
def robot_and_model(path=HUMANOID):
  """Return what is known of a robot, and its model."""
  robot, scene = robot_file.legged(Config(robot=str(path)))
  return robot, physics.load_model(scene)


@functools.cache
def own(name, path=HUMANOID):
  """Return a clip of our own at 50 frames per second."""
  return settings.read(Config(motion=name, robot=str(path)), *robot_and_model(path), 0.02)[0]
