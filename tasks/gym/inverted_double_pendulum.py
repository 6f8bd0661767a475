"""InvertedDoublePendulum: a cart on a rail balances two poles, one on top of the other."""

from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"num_envs": 256, "max_steps": 10_000_000}
PPO = gym_v5.PPO | {
  "hidden": [64, 64],
  "reference_minibatch": 2048,
  "log_std_init": -1.0,
  "log_std_min": -1.5,  # with -3, too little exploration with both poles tilted: one in twenty falls
}


@dataclass
class Config(gym_v5.Config):
  """Settings of InvertedDoublePendulum."""

  substeps: int = option(5, "number of physics steps per control step", low=1)
  height_low: float = option(1.0, "height of the tip below which the episode ends", "m")
  height_aim: float = option(2.0, "height of the tip without a penalty", "m")
  reward_healthy: float = option(
    10.0, "weight of the constant reward of a step that does not end the episode"
  )
  reward_sideways: float = option(
    -0.01, "weight of the penalty on the squared distance of the tip from the middle", "1/m^2"
  )
  reward_height: float = option(
    -1.0, "weight of the penalty on the squared distance of the tip from height_aim", "1/m^2"
  )
  reward_lower_speed: float = option(
    -1e-3, "weight of the penalty on the squared speed of the lower hinge", "s^2/rad^2"
  )
  reward_upper_speed: float = option(
    -5e-3, "weight of the penalty on the squared speed of the upper hinge", "s^2/rad^2"
  )


class Task(gym_v5.Task):
  """InvertedDoublePendulum task of Gymnasium with one action, the motor of the cart, and 9 observations."""

  robot = gym_v5.ASSETS / "inverted_double_pendulum.xml"
  outputs = ("qfrc_constraint", "site_xpos")
  normal_velocity = True
  config: Config

  def tip(self) -> tuple[Tensor, Tensor]:
    """Return x and z of the tip in the last evaluation, [num_envs] each [m]."""
    x, _, z = self.sim.site_xpos[:, 0].unbind(1)
    return x, z

  def reward(self) -> dict[str, Tensor]:
    """Reward staying up; penalise distance and speed."""
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
    """Fail if the tip is too low."""
    _, z = self.tip()
    return z <= self.config.height_low

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return cart, angles, velocities and the force of the rail limits, the last two clipped to +-10."""
    angles = self.sim.qpos[:, 1:]
    blocks = {
      "cart": self.sim.qpos[:, 0],
      "sine": angles.sin(),
      "cosine": angles.cos(),
      "velocity": self.sim.qvel.clamp(-10.0, 10.0),
      "rail_end": self.sim.qfrc_constraint[:, 0].clamp(-10.0, 10.0),
    }
    return {"policy": blocks}
