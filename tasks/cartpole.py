"""Cartpole: keep a pole upright on a cart that is pushed along a rail.

Observation, reward and limits follow IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/cartpole.py`,
`isaacgymenvs/cfg/task/Cartpole.yaml`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import reward

# Work this small is faster on one thread: 138,000 steps/s, not 40,000 on two.
TRAIN: dict[str, object] = {"num_envs": 512, "threads": 1, "max_steps": 2_000_000}
PPO: dict[str, object] = {
  "hidden": [32, 32],
  "epochs": 8,
  "minibatches": 1,
  "reference_minibatch": 8192,
  "lr_max": 0.002,  # at 0.01 the policy learns to jitter and keeps to it: 482 of 500, not 497
  "critic_coef": 4.0,
  "reward_scale": 0.1,
}


@dataclass
class Config(base.Config):
  """Settings of Cartpole; the best return is nearly `episode_steps`."""

  episode_steps: int = option(500, "control steps until the time limit", low=1)
  substeps: int = option(2, "physics steps in a control step", low=1)
  rail_limit: float = option(3.0, "distance of the cart from the middle that ends an episode", "m", low=0)
  start_position: float = option(0.1, "largest offset at the start of an episode", "m, rad", low=0)
  start_velocity: float = option(0.25, "largest speed at the start of an episode", "m/s, rad/s", low=0)
  see_velocity: bool = option(
    True, "show the velocities; without them the policy needs a memory or a history"
  )
  history_policy: int = option(1, "observations that the policy sees side by side", low=1)
  reward_upright: float = option(1.0, "weight of one per step")
  reward_angle: float = option(-1.0, "weight of the squared pole angle", "1/rad^2")
  reward_cart_speed: float = option(-0.01, "weight of the cart's speed", "s/m")
  reward_pole_speed: float = option(-0.005, "weight of the pole's angular speed", "s/rad")
  reward_failed: float = option(-2.0, "reward of a step that ends in failure, in place of all others")


class Task(base.Task):
  """The cart's motor is the action; the observation is the state."""

  robot = base.ASSETS / "cartpole" / "robot.xml"
  config: Config

  def initial_state(self) -> dict[str, Tensor]:
    """Start near the middle, nearly upright."""
    position, velocity = self.config.start_position, self.config.start_velocity
    return {
      "qpos": self.random.uniform("start position", (2,), -position, position),
      "qvel": self.random.uniform("start velocity", (2,), -velocity, velocity),
    }

  def reward(self) -> dict[str, Tensor]:
    """Pay for an upright pole and little motion."""
    _, angle = self.sim.qpos.unbind(1)  # [m], [rad]
    cart_velocity, pole_velocity = self.sim.qvel.unbind(1)  # [m/s], [rad/s]
    terms = {
      "upright": angle.new_ones(self.num_envs),
      "angle": angle.square(),
      "cart_speed": cart_velocity.abs(),
      "pole_speed": pole_velocity.abs(),
    }
    return reward.replace(terms, self.terminated(), "failed")

  def terminated(self) -> Tensor:
    """Fail when the cart leaves the rail or the pole falls level."""
    cart, angle = self.sim.qpos.unbind(1)
    return (cart.abs() > self.config.rail_limit) | (angle.abs() > math.pi / 2)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the cart's and the pole's positions and, unless they are hidden, velocities."""
    blocks = {"position": self.sim.qpos}
    if self.config.see_velocity:
      blocks["velocity"] = self.sim.qvel
    return {"policy": blocks}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Left and right are alike."""
    return {name: [-1, -1] for name in self.observe()["policy"]} | {"action": [-1]}
