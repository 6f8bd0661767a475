"""Humanoid AMP: a humanoid walks at commanded speeds in the style of a reference motion.

The method is that of adversarial motion priors (Peng et al. 2021, arXiv 2104.02180): the reward asks for the
commanded speed and yaw rate alone. How the robot walks comes from the style reward of `ppo.amp`, whose
discriminator compares pairs of successive states with those of walks at many speeds (`tasks/shared/walk.py`).
Episodes start in random states of the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import quat, runner
from tasks.shared.quat import AXIAL, POLAR
from tasks.shared.walk import Walk

LIMBS = ("left_hand", "right_hand", "left_ankle", "right_ankle")
SPEEDS, PHASES, COPIES = 16, 48, 8  # of the reference: their product is its number of pairs
# Standard deviation of the random offsets of the reference's features, in their units. The walks of formulas
# repeat exactly, which no robot with feet that land can do: the style is a band around them.
TOLERANCE = {
  "height": 0.02,
  "up": 0.04,
  "velocity": 0.1,
  "angular_velocity": 0.3,
  "angles": 0.08,
  "speeds": 0.8,
  "limbs": 0.03,
}
TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 40_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  "horizon": 32,
  "minibatches": 4,
  "reference_minibatch": 4096,
  "reward_transform": "none",  # rewards are in [0, 1.5]
  "log_std_init": -2.0,  # with more, the robot falls
  "amp.style_weight": 1.0,
  "amp.samples": 2,
}


@dataclass
class Config(base.Config):
  """Settings of humanoid AMP. A tracking reward falls to 1/e where its error equals tracking_width."""

  episode_steps: int = option(600, "maximum number of control steps per episode", low=1)
  substeps: int = option(6, "number of physics steps per control step", low=1)
  speed_min: float = option(0.4, "smallest commanded speed", "m/s", low=0)
  speed_max: float = option(1.2, "largest commanded speed", "m/s", low=0)
  turn_max: float = option(0.4, "largest commanded yaw rate", "rad/s", low=0)
  command_seconds: float = option(
    8.0, "longest time between new commands; the shortest is half as long", "s", low=0.1
  )
  settling_seconds: float = option(
    1.0, "time after a new command during which metrics ignore tracking errors", "s", low=0
  )
  action_margin: float = option(
    0.2, "angle by which an action of 1 goes beyond the reference's range of a joint", "rad", low=0
  )
  style_tolerance: float = option(
    1.0, "factor on the random offsets of the reference's style features", low=0
  )
  fall_height: float = option(0.9, "torso height below which the robot has fallen", "m")
  fall_tilt: float = option(0.6, "cosine of the torso tilt below which the robot has fallen", low=-1, high=1)
  tracking_width: float = option(0.4, "width of the tracking rewards", "m/s, rad/s", low=0.01)
  reward_velocity: float = option(1.0, "weight of tracking the commanded velocity, 0 ... 1")
  reward_turn: float = option(0.5, "weight of tracking the commanded yaw rate, 0 ... 1")


class Task(base.Task):
  """Humanoid AMP task with 21 actions, offsets of servo targets, and 75 observations."""

  robot = base.ASSETS / "humanoid" / "servos.xml"
  outputs = ("site_xpos",)
  config: Config

  def setup(self) -> None:
    """Compute the reference: its states, one for each pair, and the style features of the pairs."""
    config = self.config
    if config.speed_min > config.speed_max:
      raise ValueError(f"env.speed_min={config.speed_min:g} is greater than env.speed_max; lower it")
    self.joints = list(self.model.actuator_names)
    self.angles, self.speeds = self.qpos_of(*self.joints), self.qvel_of(*self.joints)
    self.torso, self.limbs = self.site_of("torso"), self.site_of(*LIMBS)
    self.command = self.buffer(2)  # speed forward [m/s], yaw rate to the left [rad/s]
    self.command_age = self.buffer()  # [s]
    self.errors = self.buffer(2)  # velocity [m/s] and yaw rate [rad/s] errors of a settled command
    ranges = {
      "forward": (config.speed_min, config.speed_max, "m/s"),
      "turn": (-config.turn_max, config.turn_max, "rad/s"),
    }
    self.commands = base.Commands(self.command, ranges)
    self.every(config.command_seconds / 2, config.command_seconds, self.new_command)
    states = [self.reference_states(later) for later in (0.0, self.dt)]
    self.start_qpos, self.start_qvel = states[0]
    low, high = self.start_qpos[:, self.angles].aminmax(dim=0)
    # Middle of the reference's range of each joint, and what an action of 1 adds to it [nu] [rad]. Joints
    # that the walk hardly moves get little: noise in the abdomen would shake the torso by 3 rad/s.
    self.middle, self.reach = (low + high) / 2, (high - low) / 2 + config.action_margin
    self.style_reference = self.spread(torch.stack([self.features_of(*state) for state in states], 1))

  def reference_states(self, later: float) -> tuple[Tensor, Tensor]:
    """Return configurations and velocities [n, ...] of walks at all speeds, phases and yaw rates.

    later: time after the phases of the pairs' first states [s]. A walk turns by a yaw rate of its torso,
    which leaves what the features measure in its frame as it is.
    """
    parts, config = list[tuple[Tensor, Tensor]](), self.config
    phase = torch.arange(PHASES, dtype=torch.float64) / PHASES
    turns = torch.linspace(-config.turn_max, config.turn_max, PHASES, dtype=torch.float64)
    order = torch.arange(PHASES) * 19 % PHASES  # each phase gets another yaw rate
    for index in range(SPEEDS):
      speed = config.speed_min + (config.speed_max - config.speed_min) * index / (SPEEDS - 1)
      walk = Walk(self.model, speed, cycle(speed))
      time = phase * walk.period + later
      qpos, qvel = walk.qpos(time), walk.qvel(time)
      qpos[:, 0] = 0
      qvel[:, 5] = turns[order.roll(index)]
      parts.append((qpos, qvel))
    qpos, qvel = (torch.cat(part).to(self.device, torch.float32) for part in zip(*parts, strict=True))
    return qpos, qvel

  def features_of(self, qpos: Tensor, qvel: Tensor) -> Tensor:
    """Return the style features [n, width] of states [n, ...], for as many at a time as there are robots."""
    found: list[Tensor] = []
    for poses, rates in zip(qpos.split(self.num_envs), qvel.split(self.num_envs), strict=True):
      self.sim.qpos[: len(poses)] = poses
      self.sim.qvel[: len(poses)] = rates
      self.sim.forward()
      features = torch.cat([part.reshape(self.num_envs, -1) for part in self.style().values()], 1)
      found.append(features[: len(poses)].to(torch.float32))
    return torch.cat(found)

  def spread(self, pairs: Tensor) -> Tensor:
    """Return copies of pairs [n, 2, width], each with a random offset, the same in both states."""
    widths = {name: block.reshape(self.num_envs, -1).shape[1] for name, block in self.style().items()}
    sizes = [TOLERANCE[name] for name, width in widths.items() for _ in range(width)]
    generator = torch.Generator("cpu").manual_seed(0)  # every rank has the same reference
    offsets = torch.randn(COPIES * len(pairs), 1, len(sizes), generator=generator, device="cpu")
    return pairs.repeat(COPIES, 1, 1) + self.config.style_tolerance * (
      offsets.to(pairs) * self.constant(sizes)
    )

  def initial_state(self) -> dict[str, Tensor]:
    """Start in a random state of the reference, with its speeds as the command."""
    count = len(self.start_qpos)
    index = self.random.uniform("start", (), 0.0, float(count)).long().clamp(max=count - 1)
    qvel = self.start_qvel[index]
    settled = torch.full_like(self.command_age, self.config.settling_seconds)
    return {
      "qpos": self.start_qpos[index],
      "qvel": qvel,
      "command": torch.stack([qvel[:, 0], qvel[:, 5]], 1),
      "command_age": settled,
    }

  def new_command(self) -> dict[str, Tensor]:
    """Return new commands [num_envs, 2] and their age, zero."""
    config = self.config
    speed = self.random.uniform("commanded speed", (), config.speed_min, config.speed_max)
    turn = self.random.uniform("commanded turn", (), -config.turn_max, config.turn_max)
    return {"command": torch.stack([speed, turn], 1), "command_age": torch.zeros_like(self.command_age)}

  def control(self) -> None:
    """Set the servo targets to the middle of the reference plus the scaled action."""
    self.sim.ctrl.copy_(self.middle + self.reach * self.action)

  def update(self) -> None:
    """Update the tracking errors once a command has settled."""
    self.command_age += self.dt
    off, turning = self.off_course()
    errors = torch.stack([off.square().sum(1).sqrt(), turning.abs()], 1)
    settled = (self.command_age > self.config.settling_seconds).unsqueeze(1)
    self.errors.copy_(torch.where(settled, errors, self.errors))

  def reward(self) -> dict[str, Tensor]:
    """Reward tracking the commanded velocity and yaw rate."""
    off, turning = self.off_course()
    width = self.config.tracking_width
    return {
      "velocity": torch.exp(-off.square().sum(1) / width**2),
      "turn": torch.exp(-turning.square() / width**2),
    }

  def terminated(self) -> Tensor:
    """Fail if the torso is too low or tilts too far."""
    low = self.sim.qpos[:, 2] < self.config.fall_height
    return low | (quat.upright(self.sim.qpos[:, 3:7]) < self.config.fall_tilt)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the style features but for hands and feet, command and last action; for the style, all."""
    style = self.style()
    policy = {name: block for name, block in style.items() if name != "limbs"}
    policy["speeds"] = 0.1 * policy["speeds"]
    return {"policy": policy | {"command": self.command, "action": self.action}, "style": style}

  def metrics(self) -> dict[str, Tensor]:
    """Return the velocity [m/s] and yaw rate [rad/s] errors of a settled command."""
    return {"velocity_error": self.errors[:, 0], "yaw_error": self.errors[:, 1]}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right."""
    joints = runner.exchange(self.joints, turning=("abdomen_z", "abdomen_x"))
    signs = {"height": [1], "up": POLAR, "velocity": POLAR, "angular_velocity": AXIAL, "command": [1, -1]}
    return signs | dict.fromkeys(("angles", "speeds", "action"), joints)

  # ---- measurements ----

  def style(self) -> dict[str, Tensor]:
    """Return the style features of the present state, in the torso frame; its heading is none of them."""
    rotation, qvel = quat.to_matrix(self.sim.qpos[:, 3:7]), self.sim.qvel
    limbs = self.sim.site_xpos[:, self.limbs] - self.sim.site_xpos[:, self.torso]
    return {
      "height": self.sim.qpos[:, 2],
      "up": rotation[:, 2],
      "velocity": quat.to_body(rotation, qvel[:, :3]),
      "angular_velocity": qvel[:, 3:6],
      "angles": self.sim.qpos[:, self.angles] - self.middle,
      "speeds": qvel[:, self.speeds],
      "limbs": quat.to_body(rotation.unsqueeze(1), limbs),
    }

  def off_course(self) -> tuple[Tensor, Tensor]:
    """Return the errors of the velocity [num_envs, 2] [m/s] and of the yaw rate [num_envs] [rad/s].

    The velocity is that of the torso on the floor, ahead and to the left as the torso faces.
    """
    rotation, qvel = quat.to_matrix(self.sim.qpos[:, 3:7]), self.sim.qvel
    ahead = torch.nn.functional.normalize(rotation[:, :2, 0], dim=1)
    forward = (ahead * qvel[:, :2]).sum(1) - self.command[:, 0]
    left = ahead[:, 0] * qvel[:, 1] - ahead[:, 1] * qvel[:, 0]
    return torch.stack([forward, left], 1), qvel[:, 5] - self.command[:, 1]


def cycle(speed: float) -> float:
  """Return the duration of a gait cycle at a speed [m/s]: both stride and cadence grow with it [s]."""
  return 1.1 - 0.3 * speed
