"""Walk: any robot with legs or wheels, from an MJCF or URDF file, follows velocity commands on any ground.

The robot's parts are read from its file (`physics/robot/`). Actions are joint targets, of wheels target
speeds. Settings are a robot dog's or, for two legs, of a humanoid, scaled to the robot's size and weight
(`tasks/shared/similarity.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import gait, locomotion, robot_file, rough
from tasks.shared.similarity import Size, adapted, similar
from tasks.shared.terrain import Ground

TRAIN, PPO, SAC = gait.TRAIN, gait.PPO, locomotion.SAC
TORQUE = 0.75  # largest change of a servo's torque by an action of 1, over its largest torque
# Least change of the torque of a leg's servo by an action of 1, over weight times leg length for each leg of
# those that stand, which are half of them: of all joints, and of those that should stay near home. With less,
# no two-legged robot can shift its weight onto one leg. They are our humanoid's.
CARRYING, BALANCING = 0.35, 0.2
WIDEST = 1.0  # largest action scale that follows from these [rad]
# Speed of a wheel at an action of 1, over that at the largest commands. To turn, wheels slip sideways against
# friction, as noise on actions seldom does with less.
SPIN = 4.0
DOG, HUMANOID = Size(0.285, 13.1), Size(0.68, 32.1)  # robots with settings that are known to work
# Settings of the humanoid that differ from the dog's, which are the defaults below.
TWO_LEGS: dict[str, float] = {
  "command_forward": 0.8,
  "command_sideways": 0.4,
  "command_turn": 0.8,
  "start_angle": 0.1,
  "start_velocity": 0.2,
  "push_speed": 0.3,
  "swing_height": 0.1,
  "reward_velocity": 2.0,
  "reward_turn": 1.5,
  "reward_effort": -1e-5,
  "reward_pose": -0.3,
  "reward_still": -0.02,
  "reward_slip": -0.2,
  "reward_alive": 0.2,
  "reward_gait": 1.0,
  "reward_load": -5.0,
  "reward_swing": -10.0,
}
# What differs on flat ground, where feet hold. With this weight of slip, a dog's foot that drags by 0.35 m/s
# costs what its contact brings by `reward_gait`.
FLAT = {"tracking_width": 0.4, "reward_pose": -0.05, "reward_slip": -1.0}
TWO_LEGS_FLAT = {
  "friction_min": 0.5,
  "tracking_width": 0.4,
  "reward_turn": 3.0,
  "reward_slip": -1.0,
  "reward_swing": -20.0,
}
# Settings of a robot on wheels, which slip where it turns.
WHEELS = {"command_sideways": 0.0, "friction_min": 0.5, "reward_turn": 1.5, "reward_slip": -0.03}
# Lengths of the ground, which are the dog's, as `similar` scales them to the legs.
WIDER = {name: getattr(rough.Config, name) * HUMANOID.length / DOG.length for name in rough.LENGTHS}


@adapted({*TWO_LEGS, *FLAT, *TWO_LEGS_FLAT, *rough.ON_ROUGH, "action_scale", "quiet_scale"})
@dataclass
class Config(robot_file.LegsConfig, rough.Config):
  """Settings of a walking robot; those that are null follow its size and weight, and number of legs."""

  terrain: str = option(
    "flat", "ground: flat, rough, stairs, or a file of heights: .png, .npy, .npz, .stl, .obj"
  )
  terrain_height: float | None = option(
    None, "height of white above black in an image as env.terrain", "m", low=0
  )
  self_collision: bool = option(True, "let links collide with each other, where the file does")
  quiet_scale: float = option(
    0.25, "largest action_scale, with two legs, of joints that should stay near home", "rad", low=0
  )
  fall_height: float = option(0.5, "height of the trunk over that at home, below which it has fallen", low=0)


class Task(rough.Task):
  """Walking task of any robot with legs or wheels; actions are joint targets, or speeds of wheels."""

  found: robot_file.LeggedRobot
  config: Config

  @classmethod
  def scene(cls, config: Any) -> Any:
    """Return the robot on its ground, an MjSpec."""
    (_, robot), ground = robot_file.legged(config), cls.ground(config)
    return robot if ground is None else ground.scene(robot)

  @classmethod
  def ground(cls, config: Any) -> Ground | None:
    """Return the ground of the settings, in the robot's size; None: it is flat."""
    robot = robot_file.legged(config)[0]
    return rough.ground(_settings(config, robot), robot.leg_length / DOG.length)

  @classmethod
  def own_file(cls, config: Any) -> Any:
    """Return the robot's own file as it stands, but for its ground, an MjModel."""
    return robot_file.own_file(config, cls.scene(config))

  def setup(self) -> None:
    """Take the parts that were found, and the settings of a similar robot."""
    given = self.config
    rough.check(given)
    self.found = robot = robot_file.legged(given)[0]
    self.config = _settings(given, robot)
    self.joints, self.feet, self.trunk = robot.joints, robot.feet, robot.trunk
    self.resting = robot.soles
    self.quiet, self.guarded, self.phases = robot.quiet, robot.guarded, robot.phases
    if robot.mirrored:
      self.mirrored = robot.mirrored
    if self.training:
      robot_file.announce(robot, _said(self.config, not all(robot.rolling)))
    names = [wheel.joint for wheel in robot.wheels]
    self.bent = [index for index, name in enumerate(robot.joints) if name not in names]
    self.angled = self._pick(self.bent)
    self.jointed = self.constant([name not in names for name in robot.joints])  # [nu] 0 of wheels
    self.steps = ~self.constant(robot.rolling).bool()  # [feet]
    super().setup()
    useless = {"clock": all(robot.rolling), "angles": not self.bent}
    self.hidden = {**self.hidden, **{name: "" for name, hides in useless.items() if hides}}
    if self.has_errors:
      self.apart(self.bias_spread.unsqueeze(0))["angles"].mul_(self.jointed)  # no angle is a wheel's target
    self.lowest = robot.height - (1 - self.config.fall_height) * robot.stature  # [m]
    self._scale_actions(given)

  def _scale_actions(self, given: Config) -> None:
    """Set the action scales of the joints [nu] [rad]: what a leg needs, if none is given for its joints.

    No scale asks more of a servo than it can give. Scales of wheels [rad/s] follow from the commands.
    """
    robot, config, two = self.found, self.config, len(self.feet) == 2
    legs = {joint for leg in robot.legs for joint in leg}
    share = 2 * self.weight * robot.leg_length / len(self.feet)  # of a leg that stands [N m]
    most = config.command_forward, config.command_turn
    spins = {wheel.joint: (most[0] + most[1] * wheel.arm) / wheel.radius for wheel in robot.wheels}  # [rad/s]
    scales = []
    for joint, stiffness, effort in zip(robot.joints, robot.stiffness, robot.effort, strict=True):
      if joint in spins:
        scales.append(SPIN * spins[joint])
        continue
      calm = two and joint in robot.quiet
      scale = min(config.quiet_scale, config.action_scale) if calm else config.action_scale
      if joint in legs and (given.quiet_scale if calm else given.action_scale) is None:
        scale = max(scale, min((BALANCING if calm else CARRYING) * share / stiffness, WIDEST))
      scales.append(min(scale, TORQUE * effort / stiffness))
    self.angle_scale.copy_(self.constant(scales))

  def terminated(self) -> Tensor:
    """Fail if the trunk is in contact, tilts too far, or is too low above the ground of the feet."""
    ground = self.below.mean(1) if self.uneven else 0.0
    return super().terminated() | (self.sim.qpos[:, 2] - ground < self.lowest)

  def swings(self) -> Tensor:
    """Return which feet should swing [num_envs, feet] bool; wheels stay on the ground."""
    return super().swings() & self.steps

  def bend(self) -> Tensor:
    """Return the joint offsets from the home pose [num_envs, nu] [rad], 0 of wheels."""
    return super().bend() * self.jointed

  def policy_blocks(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is measured, with joint angles as offsets from home, but for wheels."""
    if not self.bent:
      return {name: block for name, block in measured.items() if name != "angles"}
    blocks = super().policy_blocks(measured)
    return {**blocks, "angles": blocks["angles"][:, self.angled]}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange the left and right limbs; of a robot without symmetry, nothing."""
    if not self.found.mirrored:
      return {}
    partners, signs = self.found.mirrored
    angles = [self.bent.index(partners[joint]) for joint in self.bent], [signs[joint] for joint in self.bent]
    reflections = {**super().symmetry(), "angles": angles}
    return {name: reflection for name, reflection in reflections.items() if name not in self.hidden}


def _settings(config: Config, robot: robot_file.LeggedRobot) -> Config:
  """Return settings in which those that are null follow the robot."""
  two = len(robot.feet) == 2
  like, settings = (HUMANOID, TWO_LEGS | WIDER) if two else (DOG, {})
  if config.terrain != rough.FLAT:
    settings = rough.ON_ROUGH | settings
  elif not any(robot.rolling):
    settings = settings | (TWO_LEGS_FLAT if two else FLAT)
  if any(robot.rolling):
    settings = settings | WHEELS
  return similar(config, settings, Size(robot.leg_length, robot.mass, config.control_seconds), like)


def _said(config: Config, steps: bool) -> str:
  """Return what follows from the robot's size."""
  most = config.command_forward, config.command_sideways, config.command_turn
  speeds = "commands up to {:.2g} m/s forward, {:.2g} m/s sideways, {:.2g} rad/s".format(*most)
  return f"{speeds}; " + (f"a step cycle of {config.step_seconds:.2g} s" if steps else "it rolls")
