"""Hand cube: a hand with four fingers reorients a cube to one target orientation after another.

The task follows IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/allegro_hand.py`) and, for the progress reward,
OpenAI et al. 2018 (Learning Dexterous In-Hand Manipulation, arXiv 1808.00177). There are four differences:
actions move the joint targets, the policy cannot distinguish the sides of the cube, the critic observes the
fingertips, and a new target rotates the last one about a random axis.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tasks import base
from tasks.base import option
from tasks.shared import quat

TIPS = [f"{finger}_tip" for finger in ("index", "middle", "ring", "thumb")]
LARGEST_FORCE = 10.0  # fingertip force at which the observation of the critic is clipped [N]
SHOWN_ABOVE = 0.12  # height above the start of the cube at which viewers draw its target orientation [m]
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 100_000_000}
PPO: dict[str, object] = {
  "epochs": 3,
  "minibatches": 4,
  "reference_minibatch": 8192,
  "hidden": [256, 128],
  "kl_target": 0.016,
  "log_std_init": -0.5,
  "entropy_coef": 0.003,  # without it, the hand learns to hold the cube still and stops exploring
  "reward_transform": "scale",  # with symlog, a success would be worth only a few steps near the target
}
SAC: dict[str, object] = {"gamma": 0.97, "target_entropy": -2.0}


@dataclass
class Config(base.Config):
  """Settings of hand cube."""

  episode_steps: int = option(600, "maximum number of control steps per episode", low=1)
  substeps: int = option(6, "number of physics steps per control step", low=1)
  joint_speed: float = option(6.0, "speed of the joint targets for an action of 1", "rad/s", low=0)
  turn_min: float = option(0.5, "smallest angle between consecutive targets", "rad", low=0, high=math.pi)
  turn_max: float = option(math.pi, "largest angle between consecutive targets", "rad", low=0, high=math.pi)
  success_angle: float = option(0.4, "angle to the target below which it is reached", "rad", low=0)
  start_curl: float = option(
    0.5, "finger bend at the start as a fraction of the home pose; a loose hand turns the cube more", low=0
  )
  start_angle: float = option(0.05, "largest joint offset at the start of an episode", "rad", low=0)
  drop_distance: float = option(
    0.1, "distance of the cube from its start beyond which it has been dropped", "m", low=0
  )
  see_velocity: bool = option(
    True, "whether the policy observes velocities; without them, it needs a memory or a history"
  )
  history_policy: int = option(1, "number of consecutive observations in the policy input", low=1)
  reward_success: float = option(5.0, "weight of reaching a target")
  reward_progress: float = option(3.0, "weight of the decrease of the angle to the target", "1/rad")
  reward_near: float = option(0.01, "weight of 1 / (angle to the target + 0.1 rad)", "rad")
  reward_offset: float = option(
    -0.2, "weight of the penalty on the distance of the cube from its start", "1/m"
  )
  reward_action: float = option(-4e-6, "weight of the penalty on the sum of squared actions")
  reward_dropped: float = option(-0.5, "weight of the penalty on dropping the cube")


class Task(base.Task):
  """Hand cube task with 16 actions, speeds of joint targets; the critic also observes the fingertips."""

  robot = base.ASSETS / "hand" / "robot.xml"
  outputs: Mapping[str, str] = {"sensordata": "mean"}
  config: Config

  def setup(self) -> None:
    """Look up joints, cube and fingertips."""
    joints = self.model.actuator_names
    self.angles, self.speeds = self.qpos_of(*joints), self.qvel_of(*joints)
    self.cube, self.cube_velocity = self.qpos_of("cube"), self.qvel_of("cube")
    self.touch, self.tips = self.sensor_of(*TIPS), self.sensor_of(*(f"{tip}_position" for tip in TIPS))
    self.home, home_command = self.key_of("home")  # [nq], [16] [rad]
    bends = self.constant([not joint.endswith(("spread", "base")) for joint in joints])
    self.start = home_command * (1 + bends * (self.config.start_curl - 1))  # [16] [rad]
    self.cube_start = self.home[self.cube][:3]  # [m]
    self.low, self.high = self.constant(self.model.actuator_ctrlrange).unbind(1)  # [16] [rad]
    self.alike = self.constant(quat.CUBE_SYMMETRY)  # symmetry rotations [24, 4]
    self.command = self.buffer(self.num_actions)  # joint targets [N, 16] [rad]
    self.target = self.buffer(4)  # target orientation of the cube [N, 4]
    self.angle = self.buffer()  # angle from the cube to its target [N] [rad]
    self.left = self.buffer()  # angle at the end of the step to the target before it [N] [rad]
    self.gained = self.buffer()  # decrease of the angle in this step [N] [rad]
    self.reached = self.buffer(dtype=torch.bool)  # whether the target was reached in this step [N]
    self.successes = self.buffer()  # number of targets reached in this episode [N]

  def initial_state(self) -> dict[str, Tensor]:
    """Start with the cube in the fingers, always with the same side up."""
    offset = self.config.start_angle
    moved = self.random.uniform("start angles", (self.num_actions,), -offset, offset)
    command = (self.start + moved).clamp(self.low, self.high)
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    qpos[:, self.angles] = command
    orientation = qpos[:, self.cube][:, 3:]
    target = self.turned(orientation)
    return {"qpos": qpos, "command": command, "target": target, "angle": angle_between(orientation, target)}

  def turned(self, orientation: Tensor) -> Tensor:
    """Return orientations [N, 4], rotated about random axes."""
    low, high = self.config.turn_min, self.config.turn_max
    half = self.random.uniform("turn", (1,), low, high) / 2
    axis = normalize(self.random.normal("axis", (3,)), dim=1)
    return normalize(quat.multiply(torch.cat([half.cos(), half.sin() * axis], 1), orientation), dim=1)

  def control(self) -> None:
    """Move the joint targets."""
    self.command.add_(self.action, alpha=self.dt * self.config.joint_speed)
    self.command.clamp_(self.low, self.high)
    self.sim.ctrl.copy_(self.command)

  def update(self) -> None:
    """Compute the progress of the cube; replace targets that it reached."""
    orientation = self.sim.qpos[:, self.cube][:, 3:]
    self.left.copy_(angle_between(orientation, self.target))
    self.gained.copy_(self.angle - self.left)
    self.reached.copy_(self.left < self.config.success_angle)
    self.successes += self.reached
    self.target.copy_(torch.where(self.reached.unsqueeze(1), self.turned(self.target), self.target))
    self.angle.copy_(torch.where(self.reached, angle_between(orientation, self.target), self.left))

  def reward(self) -> dict[str, Tensor]:
    """Reward progress towards the target and reaching it; penalise offset, actions and dropping."""
    return {
      "success": self.reached,
      "progress": self.gained,
      "near": 1 / (self.left + 0.1),
      "offset": self.offset().norm(dim=1),
      "action": self.action.square().sum(1),
      "dropped": self.terminated(),
    }

  def terminated(self) -> Tensor:
    """Fail if the cube is no longer in the hand."""
    return self.offset().norm(dim=1) > self.config.drop_distance

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return joints, joint targets, cube pose and rotation to the target; add fingertips for the critic."""
    orientation = self.sim.qpos[:, self.cube][:, 3:]
    turn = quat.multiply(self.target, quat.conjugate(orientation))
    policy = {
      "angles": self.sim.qpos[:, self.angles],
      "commands": self.command,
      "cube": self.offset(),
      "lies": quat.to_rotation_vector(quat.smallest_alike(orientation, self.alike)),
      "turn": quat.to_matrix(turn)[:, :, :2],  # two columns suffice, and are continuous unlike quaternions
    }
    velocities = {
      "speeds": self.sim.qvel[:, self.speeds],
      "cube_velocity": self.sim.qvel[:, self.cube_velocity],
    }
    fingertips = {
      "touch": self.sim.sensordata[:, self.touch].clamp(max=LARGEST_FORCE),  # [N]
      "tips": self.sim.sensordata[:, self.tips],  # world positions [m]
    }
    if self.config.see_velocity:
      policy |= velocities
    return {"policy": policy, "critic": policy | velocities | fingertips}

  def metrics(self) -> dict[str, Tensor]:
    """Return the number of targets reached in the episode, and the angle to the current target [rad]."""
    return {"consecutive_successes": self.successes, "angle": self.angle}

  def goals(self) -> Sequence[base.Goal]:
    """Return the target orientation, above the hand."""
    above = self.cube_start + self.constant([0.0, 0.0, SHOWN_ABOVE])
    return [base.Goal(above.expand(self.num_envs, 3), quat.to_matrix(self.target), "cube")]

  def offset(self) -> Tensor:
    """Return the offset of the cube from its start [N, 3] [m]."""
    return self.sim.qpos[:, self.cube][:, :3] - self.cube_start


def angle_between(a: Tensor, b: Tensor) -> Tensor:
  """Return the angle [N] [rad] between orientations [N, 4]; rounding can turn zero into 1e-3."""
  return 2 * torch.acos((a * b).sum(1).abs().clamp(max=1.0))
