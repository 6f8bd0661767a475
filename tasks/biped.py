"""Biped: a humanoid robot with 23 joints follows velocity commands on flat ground.

A gait clock determines when each foot stands and swings, as in Unitree's `unitree_rl_gym`
(`legged_gym/envs/g1`, BSD-3-Clause). The rewards that `tasks/shared/locomotion.py` lacks follow it too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import locomotion

SIDES = ("left", "right")
LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist")
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 100_000_000}
PPO: dict[str, object] = {"hidden": [256, 128, 64], "horizon": 24, "epochs": 3, "log_std_init": -1.2}


@dataclass
class Config(locomotion.Config):
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
  step_seconds: float = option(0.8, "duration of a gait cycle", "s", low=0.1)
  stance: float = option(0.55, "fraction of the gait cycle in which a foot stands", low=0, high=1)
  swing_height: float = option(0.1, "target height of the site of a swinging foot", "m", low=0)
  fall_height: float = option(0.5, "pelvis height below which the robot has fallen", "m")
  reward_velocity: float = option(2.0, "weight of tracking the commanded velocity")
  reward_turn: float = option(1.5, "weight of tracking the commanded yaw rate")
  reward_effort: float = option(-1e-5, "weight of the penalty on the sum of squared torques", "1/(N m)^2")
  reward_pose: float = option(
    -0.3, "weight of the penalty on squared offsets of hips (roll, yaw), waist, arms", "1/rad^2"
  )
  reward_still: float = option(
    -0.02, "weight of the penalty on summed joint offsets from home under a command to stand", "1/rad"
  )
  reward_flight: float = option(
    0.0, "weight of the swing time of a foot; here, the gait clock suffices", "1/s"
  )
  reward_slip: float = option(
    -0.2, "weight of the penalty on the squared sliding speed of feet in contact", "s^2/m^2"
  )
  reward_alive: float = option(0.2, "weight of the constant reward per step")
  reward_gait: float = option(0.5, "weight of the number of feet that agree with the gait clock")
  reward_swing: float = option(
    -10.0, "weight of the penalty on the squared height error of swinging feet", "1/m^2"
  )


class Task(locomotion.Task):
  """Biped task with 23 actions, joint targets, and 83 observations of the policy."""

  robot = base.ASSETS / "biped" / "robot.xml"
  outputs: Mapping[str, str] = {**locomotion.Task.outputs, "site_xpos": "last"}
  joints = (
    *(f"{side}_{part}" for side in SIDES for part in LEG),
    "waist",
    *(f"{side}_{part}" for side in SIDES for part in ARM),
  )
  quiet = tuple(name for name in joints if name.endswith(("hip_roll", "hip_yaw", "waist", *ARM)))
  feet = tuple(f"{side}_foot" for side in SIDES)
  trunk = "torso"
  guarded = tuple(f"{side}_{part}" for side in SIDES for part in ("hip_yaw", "knee", "elbow", "wrist"))
  mirrored = (  # rolls and yaws turn the other way
    [*range(6, 12), *range(6), 12, *range(18, 23), *range(13, 18)],
    [*[1, -1, -1, 1, 1, -1] * 2, -1, *[1, -1, -1, 1, -1] * 2],
  )
  config: Config

  def setup(self) -> None:
    """Look up the feet; use a smaller action scale for quiet joints."""
    self.soles = self.site_of(*self.feet)
    self.offsets = self.constant([0.0, 0.5])  # phase of each foot
    super().setup()
    self.angle_scale[self.posed] = self.config.quiet_scale

  def clock(self) -> Tensor:
    """Return the time since the start of the episode in gait cycles [num_envs, 1]."""
    return (self.episode_steps * (self.dt / self.config.step_seconds)).unsqueeze(1)

  def reward(self) -> dict[str, Tensor]:
    """Add rewards for feet that follow the gait clock and lift off the ground."""
    terms = super().reward()
    swings = ((self.clock() + self.offsets).frac() >= self.config.stance) & self.moves().unsqueeze(1)
    height = self.sim.site_xpos[:, self.soles, 2]
    return terms | {
      "alive": torch.ones_like(terms["tilt"]),
      "gait": (self.contacts() != swings).sum(1),
      "swing": ((height - self.config.swing_height).square() * swings).sum(1),
    }

  def terminated(self) -> Tensor:
    """Fail if the torso is in contact, tilts too far, or is too low."""
    return super().terminated() | (self.sim.qpos[:, 2] < self.config.fall_height)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Add the gait clock."""
    groups, angle = super().observe(), 2 * math.pi * self.clock()
    clock = {"clock": torch.cat([angle.sin(), angle.cos()], 1)}
    return {group: blocks | clock for group, blocks in groups.items()}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange the left and right limbs, with the gait clock shifted by half a cycle."""
    return {**super().symmetry(), "clock": [-1, -1]}
