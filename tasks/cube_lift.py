"""Cube lift: an arm grasps a cube on a table, lifts it to a goal in the air and holds it there."""

from dataclasses import dataclass

from tasks import base
from tasks.base import option
from tasks.shared import arm, lifting

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 20_000_000}
PPO = lifting.PPO


@dataclass
class Config(arm.Config, lifting.Config):
  """Settings of cube lift."""

  control: arm.Control = option(
    arm.Control.osc, "controlled quantity: joint targets, or the grasp point by operational-space control"
  )


class Task(arm.Task, lifting.Task):
  """Cube lift task; actions are displacements of the grasp point or of joints, and the gripper opening."""

  robot = base.ASSETS / "arm" / "table.xml"
  config: Config

  def setup(self) -> None:
    """Look up the arm and the cube."""
    super().setup()
    self.set_cube()
