"""Biped: a humanoid robot with 23 joints follows velocity commands on flat ground.

A gait clock determines when each foot stands and swings, see `tasks/shared/gait.py`.
"""

from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import gait, locomotion

SIDES = ("left", "right")
LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist")
TRAIN, PPO, SAC = gait.TRAIN, gait.PPO, locomotion.SAC


@dataclass
class Config(gait.Config):
  """Settings of the biped."""

  substeps: int = option(8, "number of physics steps per control step", low=1)
  quiet_scale: float = option(
    0.25, "action_scale of hips (roll, yaw), waist and arms; more shakes the pelvis", "rad", low=0
  )
  command_forward: float = option(0.8, "largest commanded forward or backward speed", "m/s", low=0)
  command_sideways: float = option(0.4, "largest commanded sideways speed", "m/s", low=0)
  command_turn: float = option(0.8, "largest commanded yaw rate", "rad/s", low=0)
  start_angle: float = option(0.1, "largest joint offset at the start of an episode", "rad", low=0)
  start_velocity: float = option(
    0.2, "largest trunk velocity at the start of an episode", "m/s, rad/s", low=0
  )
  push_speed: float = option(
    0.3, "largest change of the trunk velocity by a push, along x and along y", "m/s", low=0
  )
  friction_min: float = option(0.5, "smallest friction coefficient in training", low=0)
  fall_height: float = option(0.5, "pelvis height below which the robot has fallen", "m")
  swing_height: float = option(0.095, "target height of a swinging foot above its height at home", "m", low=0)
  reward_alive: float = option(0.2, "weight of the constant reward per step")
  reward_gait: float = option(1.0, "weight of the share of feet that agree with the gait clock")
  reward_velocity: float = option(2.0, "weight of tracking the commanded velocity")
  reward_turn: float = option(1.5, "weight of tracking the commanded yaw rate")
  reward_effort: float = option(-1e-5, "weight of the penalty on the sum of squared torques", "1/(N m)^2")
  reward_pose: float = option(
    -0.3, "weight of the penalty on squared offsets of hips (roll, yaw), waist, arms", "1/rad^2"
  )
  reward_still: float = option(
    -0.02, "weight of the penalty on summed joint offsets from home under a command to stand", "1/rad"
  )
  reward_load: float = option(
    -5.0, "weight of the penalty on the share of the weight that feet carry which should swing"
  )
  reward_slip: float = option(
    -0.2, "weight of the penalty on the squared sliding speed of feet in contact", "s^2/m^2"
  )
  reward_swing: float = option(
    -10.0, "weight of the penalty on the squared height error of swinging feet", "1/m^2"
  )


class Task(gait.Task):
  """Biped task with 23 actions, joint targets, and 80 observations of the policy."""

  robot = base.ASSETS / "biped" / "robot.xml"
  joints = (
    *(f"{side}_{part}" for side in SIDES for part in LEG),
    "waist",
    *(f"{side}_{part}" for side in SIDES for part in ARM),
  )
  quiet = tuple(name for name in joints if name.endswith(("hip_roll", "hip_yaw", "waist", *ARM)))
  feet = tuple(f"{side}_foot" for side in SIDES)
  resting = (0.005,) * 2
  trunk = "torso"
  guarded = tuple(f"{side}_{part}" for side in SIDES for part in ("hip_yaw", "knee", "elbow", "wrist"))
  mirrored = (  # rolls and yaws turn the other way
    [*range(6, 12), *range(6), 12, *range(18, 23), *range(13, 18)],
    [*[1, -1, -1, 1, 1, -1] * 2, -1, *[1, -1, -1, 1, -1] * 2],
  )
  config: Config

  def setup(self) -> None:
    """Use a smaller action scale for quiet joints."""
    super().setup()
    self.angle_scale[self.posed] = self.config.quiet_scale

  def terminated(self) -> Tensor:
    """Fail if the torso is in contact, tilts too far, or is too low."""
    return super().terminated() | (self.sim.qpos[:, 2] < self.config.fall_height)
