"""HumanoidStandup: a humanoid that starts on its back gets up."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.base import option
from tasks.gym import humanoid
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 20_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0, "reward_scale": None}  # rewards reach 500, others of gym/* 10


@dataclass
class Config(gym_v5.Config):
  """Settings of HumanoidStandup. Episodes never terminate early."""

  substeps: int = option(5, "number of physics steps per control step", low=1)
  start_noise: float = option(
    0.01, "largest offset of positions and velocities at the start of an episode", low=0
  )
  contact_limit: float = option(
    2e7, "largest sum of squared contact forces and torques in the penalty", "N^2, N^2 m^2", low=0
  )
  reward_height: float = option(1.0, "weight of the torso height divided by the physics time step", "s/m")
  reward_alive: float = option(1.0, "weight of the constant reward per step")
  reward_control: float = option(-0.1, "weight of the penalty on the sum of squared controls")
  reward_contact: float = option(
    -5e-7, "weight of the penalty on the sum of squared contact forces and torques"
  )


class Task(humanoid.Body):
  """HumanoidStandup task of Gymnasium: getting up."""

  robot = gym_v5.ASSETS / "humanoidstandup.xml"
  config: Config

  def reward(self) -> dict[str, Tensor]:
    """Reward height; penalise squared controls and contact."""
    height = self.sim.qpos[:, 2]
    return {
      "height": height / self.model.timestep,
      "alive": torch.ones_like(height),
      "control": self.sim.ctrl.square().sum(1),
      "contact": self.squared_contact(self.config.contact_limit),
    }
