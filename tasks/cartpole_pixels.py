"""Cartpole pixels: the cart keeps its pole upright from the images of a small camera, without any state.

The camera rides beside the cart. Posts along the rail, dark on the left and bright on the right, show where
the cart is, and consecutive frames how all moves. The critic sees the state, which it needs only in training
(Pinto et al. 2017, arXiv 1710.06542).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import torch
from torch import Tensor

from tasks import base, cartpole
from tasks.base import option
from tasks.shared import mjcf

# 64 environments with long rollouts reach 450 with the fewest steps: from the state, 120,000 of them, where
# 256 environments with rollouts of a quarter take 400,000.
TRAIN: dict[str, object] = {"num_envs": 64, "max_steps": 500_000}
PPO: dict[str, object] = {
  "hidden": [64],
  "encoder_features": 64,
  "horizon": 64,
  "epochs": 4,
  "minibatches": 4,
  "reference_minibatch": 1024,
  "lr": 1e-3,
  "lr_max": 0.003,
  "critic_coef": 4.0,
  "log_std_init": -0.5,
}
POSTS = 13  # along the rail
SPACING = 0.6  # from post to post [m]


@dataclass
class Config(cartpole.Config):
  """Settings of Cartpole pixels. The best return is nearly `episode_steps`."""

  camera_size: int = option(32, "width and height of the image", "pixels", low=18, high=1024)
  stack_camera: int = option(3, "number of consecutive frames in the image that the policy sees", low=1)


class Task(cartpole.Task):
  """Cartpole with a policy that sees grey images [camera_size, camera_size, stack_camera]."""

  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:  # noqa: ARG003 (it is the same for all settings)
    """Return the cart with a camera beside it, before posts, and a thicker pole."""
    root = mjcf.read(base.ASSETS / "cartpole" / "robot.xml")
    place = {"name": "side", "pos": "0 -2 0.45", "xyaxes": "1 0 0 0 0 1", "fovy": "45"}
    ET.SubElement(mjcf.find(root, "cart"), "camera", place)
    # No physics is in the size: its pole of 5 cm would often fall between two pixels.
    next(mjcf.find(root, "pole").iter("geom")).attrib.update(size="0.06", rgba="1 1 1 1")
    for index in range(POSTS):
      x, shade = SPACING * (index - POSTS // 2), (1 + index) / POSTS
      post = {"type": "box", "size": "0.08 0.02 0.3", "pos": f"{x} 0.6 1.6"}
      post |= {"rgba": f"{shade} {shade} {shade} 1", "contype": "0", "conaffinity": "0"}
      ET.SubElement(mjcf.world(root), "geom", post)
    return mjcf.text(root)

  def setup(self) -> None:
    """Set up the camera."""
    size = self.config.camera_size
    self.view = self.camera("side", size, size, ("rgb",))

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the grey image of the camera, and the state for the critic."""
    grey = self.view.render()["rgb"].sum(-1, keepdim=True, dtype=torch.int32) // 3
    state = {"position": self.sim.qpos, "velocity": self.sim.qvel}
    return {"policy": {"camera": grey.to(torch.uint8)}, "critic": state}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange nothing: an image has no mirror."""
    return {}
