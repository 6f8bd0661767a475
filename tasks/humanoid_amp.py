"""Humanoid AMP: a humanoid goes at commanded speeds in the style of reference motions.

The method is adversarial motion priors (Peng et al. 2021, arXiv 2104.02180): the reward asks for the
commanded speed and yaw rate alone. How the robot walks comes from the style reward of `ppo.amp`. Its
discriminator compares pairs of successive states with pairs of walks at many speeds (`tasks/motion/walk.py`),
and of clips if the settings name some. Episodes start in random states of the reference.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.motion import settings, transitions
from tasks.motion.transitions import Transitions, joined
from tasks.shared import quat, robot_file, runner
from tasks.shared.quat import AXIAL, POLAR

LIMBS = ("left_hand", "right_hand", "left_ankle", "right_ankle")
WALKS = "walks"
FEATURES = ("height", "up", "velocity", "angular_velocity", "angles", "speeds", "limbs")
COPIES = 4  # of each pair of the reference, with random offsets of their own
TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 40_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  # Many small iterations with a large step each. After a million steps episodes have 34 steps with a horizon
  # of 32, 4 epochs, a target of 0.008 and a log_std of -2; 69 with 16, 3, 0.016 and -1.5; 258 with 0.03 and
  # an action margin of 0.1, not 0.2 (one seed each).
  "horizon": 16,
  "epochs": 3,
  "kl_target": 0.03,
  "minibatches": 4,
  "reference_minibatch": 2048,
  "reward_transform": "none",  # rewards are in [0, 3.5]
  "log_std_init": -1.5,
  # Without it one leg leads and the other follows, by which the discriminator knows the policy. After 1.64 M
  # steps the velocity error is 0.27 m/s and the style reward 0.46; without it, with weights of 3 and 10, they
  # are 0.49 m/s and 0.37, with 1 and 10 they are 0.51 m/s and 0.23 (one seed each).
  "mirror_augment": True,
  "amp.style_weight": 2.0,
  "amp.gradient_penalty": 20.0,
  "amp.hidden": [128, 64],
  "amp.updates": 1,
  "amp.samples": 2,
}


@dataclass
class Config(settings.Config, base.Config):
  """Settings of humanoid AMP. A tracking reward falls to 1/e where its error equals tracking_width."""

  motion: str = option(
    WALKS,
    f"reference motions of the style, with commas between: {WALKS} (at all commanded speeds up to "
    f"{transitions.FASTEST} m/s), {settings.CLIPS}, or an .npz of pairs",
  )
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
    0.1, "angle by which an action of 1 goes beyond the reference's range of a joint", "rad", low=0
  )
  style_features: list[str] = option(
    [], f"features that the discriminator compares, of {', '.join(FEATURES)}; []: all"
  )
  style_tolerance: float = option(1.0, "factor on the random offsets of the reference", low=0)
  fall_height: float = option(1.05, "torso height below which the robot has fallen", "m")
  fall_tilt: float = option(0.8, "cosine of the torso tilt below which the robot has fallen", low=-1, high=1)
  tracking_width: float = option(0.5, "width of the tracking rewards", "m/s, rad/s", low=0.01)
  reward_velocity: float = option(1.0, "weight of tracking the commanded velocity, 0 ... 1")
  reward_turn: float = option(0.5, "weight of tracking the commanded yaw rate, 0 ... 1")


@dataclass
class Clips(settings.Config, robot_file.LegsConfig):
  """Settings of clips of the humanoid."""


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
    if unknown := set(config.style_features) - set(FEATURES):
      raise ValueError(f"env.style_features: '{min(unknown)}' is none of {', '.join(FEATURES)}")
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
    self.bounds = self.constant([low_high[:2] for low_high in ranges.values()]).unbind(1)
    self.every(config.command_seconds / 2, config.command_seconds, self.new_command)
    made, recorded, weights = self.reference()
    self.starts = Transitions(*(part.to(self.device) for part in joined(made + recorded, weights)))
    low, high = self.starts.qpos[:, 0, self.angles].aminmax(dim=0)
    # Middle of the reference's range of each joint, and what an action of 1 adds to it [nu] [rad]. Joints
    # that the walk hardly moves get little: noise in the abdomen would shake the torso by 3 rad/s.
    self.middle, self.reach = (low + high) / 2, (high - low) / 2 + config.action_margin
    spread = [transitions.spread(part, self.dt, COPIES, config.style_tolerance) for part in made]
    wide = joined(spread + recorded, weights)
    states = zip(wide.qpos.to(self.device).unbind(1), wide.qvel.to(self.device).unbind(1), strict=True)
    self.style_reference = torch.stack([self.features_of(*state) for state in states], 1)

  def reference(self) -> tuple[list[Transitions], list[Transitions], list[float]]:
    """Return the pairs of the motions that the settings name: of formulas and clips, and recorded ones.

    The numbers are how often each motion comes, relative to the others, in this order.
    """
    config = self.config
    weight_of = settings.weights(config)
    recorded = [name for name in weight_of if transitions.recorded(Path(name))]
    clips = [name for name in weight_of if name != WALKS and name not in recorded]
    made, weights = list[Transitions](), list[float]()
    if WALKS in weight_of:
      speeds = config.speed_min, config.speed_max
      made.append(transitions.walks(self.model, speeds, config.turn_max, self.dt))
      weights.append(weight_of[WALKS])
    if clips:
      given = {field.name: getattr(config, field.name) for field in dataclasses.fields(settings.Config)}
      chosen = {"motion": ",".join(clips), "motion_weights": [weight_of[name] for name in clips]}
      asked = Clips(**given | chosen)
      robot, _ = robot_file.legged(asked, settings.HUMANOID)
      found = settings.load(asked, robot, self.model, self.dt)
      made += [transitions.of_clip(self.model, clip, self.dt) for clip in found]
      weights += [clip.weight for clip in found]
    weights += [weight_of[name] for name in recorded]
    return made, [transitions.read(Path(name), self.model) for name in recorded], weights

  def features_of(self, qpos: Tensor, qvel: Tensor) -> Tensor:
    """Return the style features [n, width] of states [n, ...], for as many at a time as there are robots."""
    found: list[Tensor] = []
    for poses, rates in zip(qpos.split(self.num_envs), qvel.split(self.num_envs), strict=True):
      self.sim.qpos[: len(poses)] = poses
      self.sim.qvel[: len(poses)] = rates
      self.sim.forward()
      features = torch.cat([part.reshape(self.num_envs, -1) for part in self.compared().values()], 1)
      found.append(features[: len(poses)].to(torch.float32))
    return torch.cat(found)

  def initial_state(self) -> dict[str, Tensor]:
    """Start in a random state of the reference, with its speeds as the command."""
    count = len(self.starts.qpos)
    index = self.random.uniform("start", (), 0.0, float(count)).long().clamp(max=count - 1)
    settled = torch.full_like(self.command_age, self.config.settling_seconds)
    return {
      "qpos": self.starts.qpos[index, 0],
      "qvel": self.starts.qvel[index, 0],
      "command": self.starts.command[index].clamp(*self.bounds),
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
    """Return all features but hands and feet, command and last action; for the style, the compared ones."""
    policy = {name: block for name, block in self.features().items() if name != "limbs"}
    policy["speeds"] = 0.1 * policy["speeds"]
    return {"policy": policy | {"command": self.command, "action": self.action}, "style": self.compared()}

  def metrics(self) -> dict[str, Tensor]:
    """Return the velocity [m/s] and yaw rate [rad/s] errors of a settled command."""
    return {"velocity_error": self.errors[:, 0], "yaw_error": self.errors[:, 1]}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right."""
    joints = runner.exchange(self.joints, turning=("abdomen_z", "abdomen_x"))
    signs = {"height": [1], "up": POLAR, "velocity": POLAR, "angular_velocity": AXIAL, "command": [1, -1]}
    return signs | dict.fromkeys(("angles", "speeds", "action"), joints)

  # ---- measurements ----

  def compared(self) -> dict[str, Tensor]:
    """Return the features that the discriminator compares."""
    features = self.features()
    return {name: features[name] for name in self.config.style_features or FEATURES}

  def features(self) -> dict[str, Tensor]:
    """Return the features of the present state, in the torso frame; its heading is none of them."""
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

    The velocity is the torso's on the floor, ahead and to the left as the torso faces.
    """
    rotation, qvel = quat.to_matrix(self.sim.qpos[:, 3:7]), self.sim.qvel
    ahead = torch.nn.functional.normalize(rotation[:, :2, 0], dim=1)
    forward = (ahead * qvel[:, :2]).sum(1) - self.command[:, 0]
    left = ahead[:, 0] * qvel[:, 1] - ahead[:, 1] * qvel[:, 0]
    return torch.stack([forward, left], 1), qvel[:, 5] - self.command[:, 1]
