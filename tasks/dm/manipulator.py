"""Manipulator: a planar arm with a hand brings a ball or a peg to a target, or inserts it there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 100_000_000}
PPO = suite.PPO | {"hidden": [256, 256]}

ARM = ("arm_root", "arm_shoulder", "arm_elbow", "arm_wrist", "finger", "fingertip", "thumb", "thumbtip")
TOUCH = ("palm_touch", "finger_touch", "thumb_touch", "fingertip_touch", "thumbtip_touch")
PROPS = {"ball", "target_ball", "cup", "peg", "target_peg", "slot"}
IN_HAND, IN_TARGET = 0.1, 0.2  # below these a uniform number starts an episode with the object there
CLOSE = 0.01  # distance that earns the full reward [m]


@dataclass
class Config(suite.DrawnConfig):
  """Settings of manipulator."""

  substeps: int = option(10, "number of physics steps per control step", low=1)
  peg: bool = option(False, "whether the object is a peg, and not a ball")
  insert: bool = option(False, "whether the target is in a cup, or for a peg in a slot")


class Arm(suite.DrawnTask):
  """Planar arm with a hand, with 5 actions, motor torques; what manipulator and stacker share."""

  outputs = ("sensordata", "site_xpos", "xpos", "xquat")
  force_sensors = TOUCH

  @classmethod
  def arms(cls, model: Any, random: np.random.Generator, count: int) -> suite.Arrays:
    """Return positions `qpos` [count, nq] with the arm in any pose, and as many `mocap_pos`, `mocap_quat`."""
    qpos = np.tile(model.qpos0, (count, 1))
    columns = {name: model.jnt_qposadr[model.joint_id(name)] for name in ARM}
    drawn, arm = suite.draw_positions(model, random, count), [*columns.values()]
    qpos[:, arm] = drawn[:, arm]
    qpos[:, columns["finger"]] = qpos[:, columns["thumb"]]
    places = {
      name: np.tile(getattr(model, f"{name}0"), (count, 1, 1)) for name in ("mocap_pos", "mocap_quat")
    }
    return {"qpos": qpos, **places}

  def setup(self) -> None:
    """Look up the joints of the arm, the hand and the sites."""
    super().setup()
    self.sites = {name: self.model.site_id(name) for name in self.model.site_names if name}
    self.arm_qpos, self.arm_qvel = self.joints_of(*ARM)
    self.hand = self.body_of("hand")

  def distance(self, one: str, other: str) -> Tensor:
    """Return the distance between two sites [num_envs] [m]."""
    first, second = (self.sim.site_xpos[:, self.sites[name]] for name in (one, other))
    return (first - second).norm(dim=1)

  def pose(self, bodies: slice | Tensor) -> Tensor:
    """Return the poses of bodies in the plane [num_envs, bodies, 4], see suite.planar_pose."""
    return suite.planar_pose(self.sim.xpos[:, bodies], self.sim.xquat[:, bodies])

  def arm(self) -> dict[str, Tensor]:
    """Return the observation blocks of the arm and of touch."""
    angles = self.sim.qpos[:, self.arm_qpos]
    return {
      "arm_pos": torch.stack([angles.sin(), angles.cos()], dim=2),
      "arm_vel": self.sim.qvel[:, self.arm_qvel],
      "touch": self.forces().log1p(),
      "hand_pos": self.pose(self.hand),
    }


class Task(Arm):
  """Manipulator of the suite with 5 actions, motor torques, and 44 observations."""

  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with one object, its target and its receptacle; the last two can be moved."""
    kind, receptacle = ("peg", "slot") if config.peg else ("ball", "cup")
    moved = [f"target_{kind}", *([receptacle] if config.insert else [])]
    root = suite.read("manipulator.xml")
    mjcf.remove(root, *PROPS - {kind, *moved})
    for name in moved:
      mjcf.make_movable(root, name)
    return mjcf.text(root)

  @classmethod
  def draw(cls, model: Any, random: np.random.Generator, count: int) -> suite.Arrays:
    """Draw arm and target; the object is in the hand, in the target, or anywhere and moving."""
    states, places = cls.arms(model, random, count), model.nmocap
    x, z = random.uniform((-0.4, 0.1), (0.4, 0.4), (count, 2)).T
    angle = random.uniform(-1.0, 1.0, count) * (np.pi / 3 if places > 1 else np.pi)
    states["mocap_pos"][:, :, 0], states["mocap_pos"][:, :, 2] = x[:, None], z[:, None]
    states["mocap_quat"][:, :, 0] = np.cos(angle / 2)[:, None]
    states["mocap_quat"][:, :, 2] = np.sin(angle / 2)[:, None]
    grasp = model.site_id("grasp")
    hand = suite.evaluate(model, states, ["site_xpos", "site_xmat"])
    frame, place = hand["site_xmat"][:, grasp], hand["site_xpos"][:, grasp]
    in_hand = np.stack(
      [place[:, 0], place[:, 2], np.pi - np.arctan2(frame[:, suite.ZX], frame[:, suite.XX])], axis=1
    )
    anywhere = random.uniform((-0.5, 0.0, 0.0), (0.5, 0.7, 2 * np.pi), (count, 3))
    kind = random.uniform(size=(count, 1))
    chosen = np.where(kind < IN_TARGET, np.stack([x, z, angle], axis=1), anywhere)
    states["qpos"][:, -3:] = np.where(kind < IN_HAND, in_hand, chosen)
    states["qvel"] = np.zeros((count, model.nv))
    states["qvel"][:, -3:-2] = random.uniform(-5.0, 5.0, (count, 1)) * (kind >= IN_TARGET)
    return suite.apart(model, states)

  def setup(self) -> None:
    """Look up object and target."""
    super().setup()
    kind = "peg" if self.config.peg else "ball"
    self.object, self.target = self.body_of(kind), self.body_of(f"target_{kind}")

  def close(self, one: str, other: str) -> Tensor:
    """Return a reward for sites that are close [num_envs]."""
    return reward.tolerance(self.distance(one, other), high=CLOSE, margin=2 * CLOSE)

  def product(self) -> Tensor:
    """Reward an object in its target; for a peg also one in the hand."""
    if not self.config.peg:
      return self.close("ball", "target_ball")
    grasping = (self.close("peg_grasp", "grasp") + self.close("peg_pinch", "pinch")) / 2
    bringing = (self.close("peg", "target_peg") + self.close("peg_tip", "target_peg_tip")) / 2
    return torch.maximum(bringing, grasping / 3)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return arm, touch, hand, object and target."""
    blocks = {
      "object_pos": self.pose(self.object),
      "object_vel": self.sim.qvel[:, -3:],
      "target_pos": self.pose(self.target),
    }
    return {"policy": self.arm() | blocks}
