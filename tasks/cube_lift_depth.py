"""Cube lift depth: the arm finds, grasps and lifts the cube by a depth camera on its wrist and its joints.

The policy does not observe the cube's position. The critic and a teacher see what `cube_lift` shows its
policy; they are needed in training alone (Pinto et al. 2017, arXiv 1710.06542).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from torch import Tensor

from tasks import cube_lift
from tasks.base import option

# Half of the environments of cube_lift, with rollouts of twice the length, lift with three quarters of the
# steps: from the state, 90 % of the cubes after 0.8 M.
TRAIN: dict[str, object] = {"num_envs": 256, "max_steps": 3_000_000}
PPO: dict[str, object] = {
  **cube_lift.PPO,
  "horizon": 32,
  "minibatches": 4,
  "kl_target": 0.008,
  "encoder_features": 64,
}
DISTILL: dict[str, object] = {"loss": "mse", "mix_steps": 200_000}
SEEN = (0.02, 0.45)  # least and greatest depth of the camera [m]


@dataclass
class Config(cube_lift.Config):
  """Settings of cube lift depth."""

  camera_size: int = option(32, "width and height of the image", "pixels", low=18, high=1024)


class Task(cube_lift.Task):
  """Cube lift with a policy that sees the arm, the goal and depths [camera_size, camera_size, 1]."""

  image_ranges: Mapping[str, tuple[float, float]] = MappingProxyType({"depth": SEEN})
  config: Config

  def setup(self) -> None:
    """Set up the camera of the wrist."""
    super().setup()
    size = self.config.camera_size
    self.view = self.camera("wrist", size, size, ("depth",), depths=SEEN)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm, the goal and the image; the state for the critic and for a teacher."""
    state = super().observe()["policy"]
    image = self.view.render()["depth"]
    seen = {**self.observe_arm(), "goal_offset": state["goal_offset"], "depth": image}
    return {"policy": seen, "critic": state, "teacher": state}
