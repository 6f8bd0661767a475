"""Reach: any arm on a fixed base, from an MJCF or URDF file, brings its tip to random targets and holds it.

What the arm is made of, and where it can reach, is read from its file (`physics/robot/`). Rewards are those
of our own arm, scaled to the arm's reach (`tasks/shared/similarity.py`).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import robot_file
from tasks.shared.similarity import Size, adapted, similar

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 10_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64],
  "reference_minibatch": 4096,
  "gamma": 0.9,  # after 1.3 million steps 54 % succeed, and with 0.95 about 20 %
  "shared": False,
  "log_std_init": -1.0,
}

SLIDE = 2  # MuJoCo's number of a joint that slides
OURS = Size(0.95, 17.5)  # the arm whose settings are the defaults below


@adapted()
@dataclass
class Config(robot_file.ArmConfig, base.Config):
  """Settings of a reaching arm; those that are null follow its reach."""

  episode_steps: int = option(100, "maximum number of control steps per episode", low=1)
  control_seconds: float = option(0.04, "duration of a control step", "s", low=0.001, high=0.1)
  substeps: int = option(8, "number of physics steps per control step", low=1)
  joint_speed: float = option(2.5, "speed of a joint's target for an action of 1", "rad/s", low=0)
  slide_speed: float = option(0.5, "the same of a joint that slides", "m/s", low=0)
  lead: float = option(
    0.3, "largest offset of a joint's target from the joint, beyond that at rest", "s", low=0
  )
  start_angle: float = option(0.1, "largest joint offset at the start, over the joint's range", low=0, high=1)
  target_low: list[float] = option([], "lowest x, y and z of a target; []: what the arm reaches", "m")
  target_high: list[float] = option([], "highest x, y and z of a target; []: what the arm reaches", "m")
  success_distance: float = option(0.02, "distance from the target below which the tip is there", "m", low=0)
  success_seconds: float = option(
    0.5, "time for which the tip must be there at the end of an episode for a success", "s", low=0
  )
  precise_distance: float = option(0.1, "distance at which reward_precise falls to a quarter", "m", low=1e-3)
  reward_distance: float = option(-1.0, "weight of the penalty on the distance from the target", "1/m")
  reward_precise: float = option(1.0, "weight of 1 - tanh(distance / precise_distance)")
  reward_action: float = option(-0.01, "weight of the penalty on the mean of squared actions")


class Task(base.Task):
  """Reaching task of any arm; actions are speeds of joint targets, so that an action of zero holds still."""

  outputs = ("site_xpos", "xpos", "xmat")
  found: robot_file.Arm
  config: Config

  @classmethod
  def scene(cls, config: Any) -> Any:
    """Return the arm above a floor, an MjSpec."""
    return robot_file.arm(config)[1]

  def setup(self) -> None:
    """Take the parts that were found, the settings of a similar arm, and the targets."""
    self.found = arm = robot_file.arm(self.config)[0]
    self.config = config = similar(self.config, {}, Size(arm.reach, arm.mass), OURS)
    places = robot_file.targets(arm, config.target_low, config.target_high)
    self.places = self.constant(places)  # that targets are drawn from [n, 3] [m]
    if self.training:
      robot_file.announce(arm)
    self.columns, self.dofs = self.joints_of(*arm.joints)
    self.tip = self.model.site_id(arm.site)
    self.home, _ = self.key_of("home")  # [nq]
    self.pull = self.constant(arm.stance - arm.angles)  # offsets of the targets that hold home [nu]
    self.low, self.high = self.constant(arm.limits).unbind(1)  # of the joints [nu] [rad, m]
    self._find_axes(arm)
    self.speed = torch.where(self.slides, config.slide_speed, config.joint_speed)  # [nu] [rad/s, m/s]
    self.target = self.buffer(3)  # [m]
    self.commands = base.Commands.position(self.target, places.min(0).tolist(), places.max(0).tolist())
    self.aim = self.buffer(len(arm.joints))  # targets of the servos [rad, m]
    self.distance = self.buffer()  # between tip and target [m]
    self.held = self.buffer()  # time since the tip was last away from the target [s]

  def _find_axes(self, arm: robot_file.Arm) -> None:
    """Look up the axes of the joints in the frames of their bodies."""
    joints = [self.model.joint_id(name) for name in arm.joints]
    self.links = self.body_of(*(self.model.body_names[self.model.jnt_bodyid[joint]] for joint in joints))
    self.anchors = self.constant(self.model.jnt_pos[joints]).unsqueeze(1)  # [nu, 1, 3] [m]
    self.axes = self.constant(self.model.jnt_axis[joints]).unsqueeze(1)  # [nu, 1, 3]
    self.slides = self.constant(self.model.jnt_type[joints]) == SLIDE  # [nu] bool

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest near home, with a random target."""
    width = (len(self.found.joints),)
    offset = self.config.start_angle / 2 * self.random.uniform("start angle", width, -1.0, 1.0)
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    angles = (qpos[:, self.columns] + offset * (self.high - self.low)).clamp(self.low, self.high)
    qpos[:, self.columns] = angles
    draw = self.random.uniform("target", ()) * len(self.places)
    target = self.places[draw.long().clamp(max=len(self.places) - 1)]
    return {
      "qpos": qpos,
      "qvel": torch.zeros_like(self.sim.qvel),
      "aim": angles + self.pull,
      "target": target,
    }

  def control(self) -> None:
    """Move the targets of the servos, which stay near their joints and within their limits."""
    angles, lead = self.sim.qpos[:, self.columns] + self.pull, self.config.lead * self.speed
    aim = (self.aim + self.dt * self.speed * self.action).clamp(self.low, self.high)
    self.aim.copy_(aim.clamp(angles - lead, angles + lead))
    self.sim.ctrl.copy_(self.aim)

  def update(self) -> None:
    """Measure how far the tip is from the target, and how long it has been there."""
    self.distance.copy_(self.offset().square().sum(1).sqrt())
    self.held.add_(self.dt).mul_(self.distance < self.config.success_distance)

  def offset(self) -> Tensor:
    """Return the way from the tip to the target [num_envs, 3] [m]."""
    return self.target - self.sim.site_xpos[:, self.tip]

  def jacobian(self) -> Tensor:
    """Return the velocity of the tip for a unit speed of each joint [num_envs, nu, 3] [m, 1]."""
    frames = self.sim.xmat[:, self.links].unflatten(2, (3, 3))
    axes = (frames * self.axes).sum(3)
    anchors = self.sim.xpos[:, self.links] + (frames * self.anchors).sum(3)
    lever = self.sim.site_xpos[:, self.tip].unsqueeze(1) - anchors
    return torch.where(self.slides.unsqueeze(1), axes, torch.linalg.cross(axes, lever))

  def reward(self) -> dict[str, Tensor]:
    """Penalise distance and motion, reward precision."""
    return {
      "distance": self.distance,
      "precise": 1.0 - (self.distance / self.config.precise_distance).tanh(),
      "action": self.action.square().mean(1),
    }

  def success(self) -> Tensor:
    """Succeed if the tip was at the target for some time."""
    return self.held >= self.config.success_seconds

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the joints, the way that the servos still have to go, the tip, and the way to the target.

    `gain` says how much each joint brings the tip towards the target: the transposed Jacobian times the way,
    which is at most as long as the lever of the joint.
    """
    angles, offset = self.sim.qpos[:, self.columns], self.offset()
    near = offset / (self.distance + self.config.precise_distance).unsqueeze(1)
    blocks = {
      "angles": angles,
      "speeds": self.sim.qvel[:, self.dofs],
      "lag": self.aim - angles,
      "tip": self.sim.site_xpos[:, self.tip],
      "offset": offset,
      "gain": (self.jacobian() * near.unsqueeze(1)).sum(2),
    }
    return {"policy": blocks}

  def metrics(self) -> dict[str, Tensor]:
    """Return the distance from the target [m], that at the end of an episode, and whether the tip is there.

    The mean over the steps of an episode is logged, so its last distance counts as often as there are steps.
    """
    last = (self.episode_steps >= self.max_episode_steps) * self.max_episode_steps
    there = self.distance < self.config.success_distance
    return {"distance": self.distance, "final_distance": self.distance * last, "there": there}
