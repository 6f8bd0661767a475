"""Arm reach in colour: the arm moves its grasp point into a ball that two cameras see.

The policy does not observe the ball's position. Every environment has colours and lights of its own. The
critic and a teacher see what `arm_reach` shows its policy; they are needed in training alone (Pinto et al.
2017, arXiv 1710.06542).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tasks import arm_reach, base
from tasks.base import option

TRAIN: dict[str, object] = {"num_envs": 256, "max_steps": 3_000_000}
PPO: dict[str, object] = {
  **arm_reach.PPO,
  "horizon": 32,
  "epochs": 4,
  "kl_target": 0.008,
  "encoder_features": 64,
}
DISTILL: dict[str, object] = {"loss": "mse", "mix_steps": 200_000}
CAMERAS = ("front", "side")


@dataclass
class Config(arm_reach.Config):
  """Settings of arm reach in colour. The best return is nearly `episode_steps`."""

  camera_size: int = option(32, "width and height of the images", "pixels", low=18, high=1024)
  change_color: float = option(0.2, "largest change of the red, green and blue of a geom", low=0, high=1)
  change_light: float = option(0.4, "largest relative change of the brightness of a light", low=0, high=1)
  tilt_light: float = option(0.5, "largest tangent of the angle by which the light is tilted", low=0)
  goal_tilt: float = option(
    0.0, "largest angle between the fingers and the vertical; a ball shows none", "rad", low=0
  )
  goal_turn: float = option(
    0.0, "largest rotation of the hand about the vertical; a ball shows none", "rad", low=0
  )


class Task(arm_reach.Task):
  """Arm reach with a policy that sees the arm and two images [camera_size, camera_size, 3] of colours."""

  robot = base.ASSETS / "arm" / "goal.xml"
  config: Config

  def setup(self) -> None:
    """Set up the cameras, with the colours and lights of each environment."""
    super().setup()
    size = self.config.camera_size
    self.views = {name: self.camera(name, size, size, ("rgb",)) for name in CAMERAS}
    for view in self.views.values():
      self.paint(view.camera)

  def paint(self, camera: Any) -> None:
    """Draw colours and lights, which are the same for all cameras of an environment."""
    config, uniform = self.config, self.random.uniform
    change = config.change_color * uniform("color", camera.colors.shape[1:], -1.0, 1.0)
    camera.colors.copy_((camera.colors + change).clamp(0.0, 1.0))
    brightness = 1.0 + config.change_light * uniform("brightness", camera.diffuse.shape[1:2], -1.0, 1.0)
    camera.diffuse.mul_(brightness.unsqueeze(2))
    camera.lights[:, 0, 3:5] += config.tilt_light * uniform("tilt", (2,), -1.0, 1.0)  # of its direction

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home with a random goal, and the ball there."""
    start = super().initial_state()
    return start | {"mocap_pos": start["goal_position"].unsqueeze(1)}

  def goals(self) -> Sequence[base.Goal]:
    """Return none: the ball shows the goal."""
    return []

  def update(self) -> None:
    """Keep the ball at the goal, which a person may move."""
    self.sim.mocap_pos[:, 0] = self.goal_position
    super().update()

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm and the images; the state for the critic and for a teacher."""
    state = super().observe()["policy"]
    images = {name: view.render()["rgb"] for name, view in self.views.items()}
    return {"policy": self.observe_arm() | images, "critic": state, "teacher": state}
