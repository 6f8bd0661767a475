"""InvertedPendulum: a cart on a rail balances a pole."""

from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"num_envs": 256, "max_steps": 1_000_000}
PPO = gym_v5.PPO | {"hidden": [64, 64], "reference_minibatch": 2048, "log_std_init": -1.0}


@dataclass
class Config(gym_v5.Config):
  """Settings of InvertedPendulum."""

  substeps: int = option(2, "number of physics steps per control step", low=1)
  start_noise: float = option(
    0.01, "largest offset of positions and velocities at the start of an episode", low=0
  )
  angle_limit: float = option(0.2, "pole angle beyond which the episode ends", "rad", low=0)
  reward_upright: float = option(1.0, "weight of the constant reward of a step that does not end the episode")


class Task(gym_v5.Task):
  """InvertedPendulum task of Gymnasium with one action, the motor of the cart; it observes the state."""

  robot = gym_v5.ASSETS / "inverted_pendulum.xml"
  outputs = ()
  config: Config

  def reward(self) -> dict[str, Tensor]:
    """Reward an upright pole."""
    return {"upright": ~self.terminated()}

  def terminated(self) -> Tensor:
    """Fail if the pole tilts too far."""
    return self.sim.qpos[:, 1].abs() > self.config.angle_limit

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state."""
    return {"policy": {"position": self.sim.qpos, "velocity": self.sim.qvel}}
