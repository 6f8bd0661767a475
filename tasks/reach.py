"""Reach: any arm on a fixed base, from an MJCF or URDF file, brings its tip to random targets and holds it.

With env.orientation=true the tip is turned as the target asks, too.

What the arm is made of, and where it can reach, is read from its file (`physics/robot/`). The rewards
of our own arm are scaled to the arm's reach (`tasks/shared/similarity.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import quat, robot_file
from tasks.shared.jacobian import Jacobian
from tasks.shared.similarity import Size, adapted, similar

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 10_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64],
  "reference_minibatch": 4096,
  "gamma": 0.9,  # after 1.3 million steps 54 % succeed, and with 0.95 about 20 %
  "shared": False,
  "log_std_init": -1.0,
}

OURS = Size(0.95, 17.5, 0.04)  # our arm, with the defaults below


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
  orientation: bool = option(False, "turn the tip as the target asks, too")
  success_distance: float = option(0.02, "distance from the target below which the tip is there", "m", low=0)
  success_angle: float = option(
    0.1, "angle to the target's orientation below which the tip is there", "rad", low=0
  )
  success_seconds: float = option(
    0.5, "time for which the tip must be there at the end of an episode for a success", "s", low=0
  )
  precise_distance: float = option(0.1, "distance at which reward_precise falls to a quarter", "m", low=1e-3)
  reward_distance: float = option(-1.0, "weight of the penalty on the distance from the target", "1/m")
  reward_precise: float = option(1.0, "weight of 1 - tanh(distance / precise_distance)")
  precise_angle: float = option(0.4, "angle at which reward_aligned falls to a quarter", "rad", low=1e-3)
  reward_angle: float = option(
    -0.2, "weight of the penalty on the angle to the target's orientation", "1/rad"
  )
  reward_aligned: float = option(0.5, "weight of 1 - tanh(angle / precise_angle)")
  reward_action: float = option(-0.01, "weight of the penalty on the mean of squared actions")


class Task(base.Task):
  """Reaching task of any arm; actions are speeds of joint targets, so that an action of zero holds still."""

  outputs = ("site_xpos", "site_xmat", "xpos", "xmat")
  found: robot_file.Arm
  config: Config

  @classmethod
  def scene(cls, config: Any) -> Any:
    """Return the arm above a floor, an MjSpec."""
    return robot_file.arm(config)[1]

  def setup(self) -> None:
    """Take the parts that were found, the settings of a similar arm, and the targets."""
    self.found = arm = robot_file.arm(self.config)[0]
    self.config = config = similar(
      self.config, {}, Size(arm.reach, arm.mass, self.config.control_seconds), OURS
    )
    places, turns = robot_file.targets(arm, config.target_low, config.target_high)
    self.places, self.turns = self.constant(places), self.constant(turns)  # of targets [n, 3] [m], [n, 3, 3]
    if self.training:
      robot_file.announce(arm)
    self.columns, self.dofs = self.joints_of(*arm.joints)
    self.tip = self.model.site_id(arm.site)
    self.home, _ = self.key_of("home")  # [nq]
    self.pull = self.constant(arm.stance - arm.angles)  # offsets of the targets that hold home [nu]
    self.low, self.high = self.constant(arm.limits).unbind(1)  # of the joints [nu] [rad, m]
    self.jacobian = Jacobian(self, arm.joints, arm.site)
    slides = self.jacobian.slides
    self.speed = torch.where(slides, config.slide_speed, config.joint_speed)  # [nu] [rad/s, m/s]
    self.target, self.target_turn = self.buffer(3), self.buffer(3, 3)  # [m], rotation matrix
    self.commands = base.Commands.position(self.target, places.min(0).tolist(), places.max(0).tolist())
    self.aim = self.buffer(len(arm.joints))  # targets of the servos [rad, m]
    self.distance, self.angle = self.buffer(), self.buffer()  # between tip and target [m], [rad]
    self.held = self.buffer()  # time since the tip was last away from the target [s]

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest near home, with a random target."""
    width = (len(self.found.joints),)
    offset = self.config.start_angle / 2 * self.random.uniform("start angle", width, -1.0, 1.0)
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    angles = (qpos[:, self.columns] + offset * (self.high - self.low)).clamp(self.low, self.high)
    qpos[:, self.columns] = angles
    draw = self.random.uniform("target", ()) * len(self.places)
    index = draw.long().clamp(max=len(self.places) - 1)
    return {
      "qpos": qpos,
      "qvel": torch.zeros_like(self.sim.qvel),
      "aim": angles + self.pull,
      "target": self.places[index],
      "target_turn": self.turns[index],
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
    if self.config.orientation:
      self.angle.copy_(self.turn().square().sum(1).sqrt())
    self.held.add_(self.dt).mul_(self.there())

  def there(self) -> Tensor:
    """Return where the tip is at its target [num_envs] bool."""
    near, aligned = self.distance < self.config.success_distance, self.angle < self.config.success_angle
    return near & aligned if self.config.orientation else near

  def goals(self) -> Sequence[base.Goal]:
    """Return the target, with the pose of the tip if the orientation counts."""
    pose = (self.target_turn, self.found.site) if self.config.orientation else ()
    return [base.Goal(self.target, *pose)]

  def offset(self) -> Tensor:
    """Return the way from the tip to the target [num_envs, 3] [m]."""
    return self.target - self.sim.site_xpos[:, self.tip]

  def turn(self) -> Tensor:
    """Return the rotation from the tip to the target, axis times angle [num_envs, 3] [rad]."""
    return quat.turn_between(self.sim.site_xmat[:, self.tip].unflatten(1, (3, 3)), self.target_turn)

  def reward(self) -> dict[str, Tensor]:
    """Penalise distance, angle and motion, reward precision; of the angle only if the orientation counts."""
    return {
      "distance": self.distance,
      "precise": 1.0 - (self.distance / self.config.precise_distance).tanh(),
      "angle": self.angle,
      "aligned": self.config.orientation * (1.0 - (self.angle / self.config.precise_angle).tanh()),
      "action": self.action.square().mean(1),
    }

  def success(self) -> Tensor:
    """Succeed if the tip was at the target for some time."""
    return self.held >= self.config.success_seconds

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the joints, the way that the servos still have to go, the tip, and the way to the target.

    `gain` says how much each joint brings the tip towards the target: the transposed Jacobian times the way,
    which is at most as long as the lever of the joint. `turn` and `turn_gain` are the same of the rotation.
    """
    angles, offset = self.sim.qpos[:, self.columns], self.offset()
    near = offset / (self.distance + self.config.precise_distance).unsqueeze(1)
    blocks = {
      "angles": angles,
      "speeds": self.sim.qvel[:, self.dofs],
      "lag": self.aim - angles,
      "tip": self.sim.site_xpos[:, self.tip],
      "offset": offset,
      "gain": (self.jacobian.linear() * near.unsqueeze(1)).sum(2),
    }
    if self.config.orientation:
      turn = self.turn()
      aim = turn / (self.angle + self.config.precise_angle).unsqueeze(1)
      blocks |= {"turn": turn, "turn_gain": (self.jacobian.angular() * aim.unsqueeze(1)).sum(2)}
    return {"policy": blocks}

  def metrics(self) -> dict[str, Tensor]:
    """Return distance [m] and angle [rad], those at the end of an episode, and whether the tip is there.

    The mean over the steps of an episode is logged, so its last distance counts as often as there are steps.
    """
    last = (self.episode_steps >= self.max_episode_steps) * self.max_episode_steps
    found = {"distance": self.distance} | ({"angle": self.angle} if self.config.orientation else {})
    finals = {f"final_{name}": value * last for name, value in found.items()}
    return {**found, **finals, "there": self.there()}
