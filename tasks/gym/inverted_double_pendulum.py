"""InvertedDoublePendulum: a cart on a rail keeps two poles, one upon the other, upright."""

from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"num_envs": 256, "max_steps": 10_000_000}
PPO = gym_v5.PPO | {
  "hidden": [64, 64],
  "reference_minibatch": 2048,
  "log_std_init": -1.0,
  "log_std_min": -1.5,  # at -3 too little is tried from starts with both poles tilted: one in twenty falls
}


@dataclass
class Config(gym_v5.Config):
  """Settings of InvertedDoublePendulum."""

  substeps: int = option(5, "physics steps in a control step", low=1)
  height_low: float = option(1.0, "height of the tip at which an episode ends", "m")
  height_aim: float = option(2.0, "height of the tip that costs nothing", "m")
  reward_healthy: float = option(10.0, "weight of one per step that does not end the episode early")
  reward_sideways: float = option(-0.01, "weight of the tip's squared distance from the middle", "1/m^2")
  reward_height: float = option(-1.0, "weight of the tip's squared distance from height_aim", "1/m^2")
  reward_lower_speed: float = option(-1e-3, "weight of the lower hinge's squared speed", "s^2/rad^2")
  reward_upper_speed: float = option(-5e-3, "weight of the upper hinge's squared speed", "s^2/rad^2")


class Task(gym_v5.Task):
  """The cart's motor is the action; the observation has 9 numbers."""

  robot = gym_v5.ASSETS / "inverted_double_pendulum.xml"
  outputs = ("qfrc_constraint", "site_xpos")
  normal_velocity = True
  config: Config

  def tip(self) -> tuple[Tensor, Tensor]:
    """Return where the tip was in the last evaluation: along the rail, up [num_envs] [m]."""
    x, _, z = self.sim.site_xpos[:, 0].unbind(1)
    return x, z

  def reward(self) -> dict[str, Tensor]:
    """Pay for staying up, charge for distance and speed."""
    x, z = self.tip()
    _, lower, upper = self.sim.qvel.square().unbind(1)
    return {
      "healthy": ~self.terminated(),
      "sideways": x.square(),
      "height": (z - self.config.height_aim).square(),
      "lower_speed": lower,
      "upper_speed": upper,
    }

  def terminated(self) -> Tensor:
    """Fail when the tip is low."""
    _, z = self.tip()
    return z <= self.config.height_low

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show cart, angles, velocities and the force of the rail's ends, the last two within +-10."""
    angles = self.sim.qpos[:, 1:]
    blocks = {
      "cart": self.sim.qpos[:, 0],
      "sine": angles.sin(),
      "cosine": angles.cos(),
      "velocity": self.sim.qvel.clamp(-10.0, 10.0),
      "rail_end": self.sim.qfrc_constraint[:, 0].clamp(-10.0, 10.0),
    }
    return {"policy": blocks}
