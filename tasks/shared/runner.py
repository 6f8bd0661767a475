"""Running robots: observations, rewards and termination of running towards a distant target.

They follow IsaacGymEnvs 1.5.1 (`ant.py` and `humanoid.py` of `isaacgymenvs/tasks`, `Ant.yaml` and
`Humanoid.yaml` of `isaacgymenvs/cfg/task`), with three differences: angles lie in (-pi, pi]; the bearing of
the target is measured on the floor (IsaacGymEnvs passes z instead of y to atan2); and the contact forces of
the feet are MuJoCo's, in world axes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import quat, reward
from tasks.shared.quat import AXIAL, POLAR


@dataclass
class Config(base.Config):
  """Settings of a running robot; each robot has its own weights."""

  episode_steps: int = option(1000, "maximum number of control steps per episode", low=1)
  substeps: int = option(4, "number of physics steps per control step", low=1)
  target_distance: float = option(1000.0, "distance from the start to the target", "m", low=1)
  fall_height: float = option(0.0, "torso height below which the robot has fallen", "m")
  start_angle: float = option(0.2, "largest joint offset at the start of an episode", "rad", low=0)
  start_velocity: float = option(0.1, "largest joint speed at the start of an episode", "rad/s", low=0)
  reward_progress: float = option(1.0, "weight of the speed towards the target", "s/m")
  reward_alive: float = option(1.0, "weight of the constant reward per step")
  reward_upright: float = option(0.1, "weight of a torso within 21 degrees of upright")
  reward_heading: float = option(0.5, "weight of facing the target, largest within 37 degrees")
  reward_action: float = option(0.0, "weight of the penalty on the sum of squared actions")
  reward_energy: float = option(
    0.0, "weight of the penalty on the sum of |action x joint speed| x relative motor strength", "s/rad"
  )
  reward_joint_limit: float = option(0.0, "weight of the penalty on joints at their limits")
  reward_fallen: float = option(0.0, "reward of a step that ends in a fall, replacing all other terms")


class Task(base.Task):
  """Task of a running robot; actions are motor torques, and each motor has the name of its joint."""

  outputs: Sequence[str] = ("cfrc_ext",)
  config: Config
  feet: tuple[str, ...]  # names of bodies, with "left" or "right" in them
  turning: tuple[str, ...]  # name endings of joints with an angle that changes sign in the mirror
  spin_scale = 1.0  # observation scale of the torso's angular velocity [s/rad]
  speed_scale: float  # observation scale of joint speeds [s/rad]
  force_scale: float  # observation scale of torques and forces [1/(N m), 1/N]

  def setup(self) -> None:
    """Look up joints, feet, joint ranges and motors; set the target."""
    self.joints = list(self.model.actuator_names)
    self.angles, self.speeds = self.joints_of(*self.joints)
    self.soles = self.body_of(*self.feet)
    limits = self.constant(self.model.jnt_range)[[self.model.joint_id(name) for name in self.joints]]
    self.low, self.high = limits.unbind(1)  # joint ranges [n] [rad]
    self.middle, self.half = (self.low + self.high) / 2, (self.high - self.low) / 2  # [n] [rad]
    gear = self.constant(self.model.actuator_gear[:, 0])
    self.share = gear / gear.max()  # relative motor strength [n]
    self.home = self.constant(self.model.qpos0)  # [nq]
    self.target = self.constant([self.config.target_distance, 0.0])  # on the floor [m]
    self.before = self.buffer(2)  # horizontal position of the torso before the action [num_envs, 2] [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start in the home pose with random joint offsets and speeds, within the joint ranges."""
    offset, speed = self.config.start_angle, self.config.start_velocity
    random = self.random.uniform("start", (2, len(self.joints)), -1.0, 1.0)
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    qvel = torch.zeros_like(self.sim.qvel)
    qpos[:, self.angles] = (qpos[:, self.angles] + offset * random[:, 0]).clamp(self.low, self.high)
    qvel[:, self.speeds] = speed * random[:, 1]
    return {"qpos": qpos, "qvel": qvel}

  def control(self) -> None:
    """Store the position of the torso, then set the motors."""
    self.before.copy_(self.sim.qpos[:, :2])
    super().control()

  def reward(self) -> dict[str, Tensor]:
    """Reward speed towards the target, posture and heading; penalise effort."""
    _, up, heading, _ = self.attitude()
    # Progress is d0 - d1 = (d0^2 - d1^2) / (d0 + d1), which avoids a difference of large numbers in float32.
    position = self.sim.qpos[:, :2]
    old, new = self.target - self.before, self.target - position
    distances = torch.hypot(*old.unbind(1)) + torch.hypot(*new.unbind(1))
    gained = ((position - self.before) * (old + new)).sum(1) / distances  # [m]
    terms = {
      "progress": gained / self.dt,
      "alive": torch.ones_like(gained),
      "upright": up > 0.93,
      "heading": (heading / 0.8).clamp(max=1.0),
      "action": self.action.square().sum(1),
      "energy": (self.share * self.action * self.sim.qvel[:, self.speeds]).abs().sum(1),
      "joint_limit": self.at_limits(self.joint_fraction()),
    }
    return reward.replace(terms, self.terminated(), "fallen")

  def at_limits(self, fraction: Tensor) -> Tensor:
    """Return a measure of joints at their limits [N] from `joint_fraction()` [N, n]."""
    raise NotImplementedError

  def terminated(self) -> Tensor:
    """Fail if the torso is below `fall_height`."""
    return self.sim.qpos[:, 2] < self.config.fall_height

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return torso motion in the torso frame, joints, contact forces of the feet and the last action."""
    rotation, up, heading, bearing = self.attitude()
    qvel = self.sim.qvel
    return {
      "policy": {
        "height": self.sim.qpos[:, 2],
        "velocity": quat.to_body(rotation, qvel[:, :3]),
        "angular_velocity": self.spin_scale * qvel[:, 3:6],
        "yaw": torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]),
        "roll": torch.atan2(rotation[:, 2, 1], rotation[:, 2, 2]),
        "bearing": bearing,
        "up": up,
        "heading": heading,
        "angles": self.joint_fraction(),
        "speeds": self.speed_scale * qvel[:, self.speeds],
        # Contact torque about the robot's centre of mass [N m] and contact force [N] on each foot, in world
        # axes, in the last substep (MuJoCo's cfrc_ext), clipped at the peaks of rare hard landings.
        "feet": (self.force_scale * self.sim.cfrc_ext[:, self.soles]).clamp(-10.0, 10.0),
        "action": self.action,
      }
    }

  def metrics(self) -> dict[str, Tensor]:
    """Return the speed of the torso along x [m/s]."""
    return {"forward_speed": self.sim.qvel[:, 0]}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right."""
    joints = exchange(self.joints, self.turning)
    feet = [6 * foot + i for foot in exchange(self.feet)[0] for i in range(6)]
    signs = {"height": [1], "yaw": [-1], "roll": [-1], "bearing": [-1], "up": [1], "heading": [1]}
    return {
      **signs,
      "velocity": POLAR,
      "angular_velocity": AXIAL,
      "angles": joints,
      "speeds": joints,
      "feet": (feet, (AXIAL + POLAR) * len(self.feet)),
      "action": joints,
    }

  def attitude(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the attitude of the torso: rotation [N, 3, 3], up, heading and bearing [N].

    `up` is the cosine of the angle between its z axis and the vertical, `heading` that between its x axis and
    the direction to the target, `bearing` the horizontal angle from its x axis to that direction [rad].
    """
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    x, y = (self.target - self.sim.qpos[:, :2]).unbind(1)
    ahead, left = rotation[:, 0, 0], rotation[:, 1, 0]
    along, across = ahead * x + left * y, ahead * y - left * x
    return rotation, rotation[:, 2, 2], along / torch.hypot(x, y), torch.atan2(across, along)

  def joint_fraction(self) -> Tensor:
    """Return joint angles scaled to their ranges [N, n]: -1 at the lower limit, 1 at the upper."""
    return (self.sim.qpos[:, self.angles] - self.middle) / self.half


def exchange(names: Sequence[str], turning: tuple[str, ...] = ()) -> tuple[list[int], list[int]]:
  """Return (index, signs) of the mirror image that exchanges "left" and "right" in `names`.

  Names that end with a word of `turning` have the sign -1, because those joints turn the other way.
  """
  other = {"left": "right", "right": "left"}
  mirrored = ["_".join(other.get(word, word) for word in name.split("_")) for name in names]
  signs = [-1 if turning and name.endswith(turning) else 1 for name in names]
  return [list(names).index(name) for name in mirrored], signs
