"""Policies with random weights, for tests."""

import torch

from gpurobot.deploy.policy import Policy
from gpurobot.learn.network import ActorCritic
from gpurobot.settings.algorithms import PPOConfig, Precision

NUM_ENVS, DIMS, ACTIONS = 4, {"policy": 7, "critic": 9}, 3


def make(
  dims: dict[str, int] = DIMS, actions: int = ACTIONS, choices: tuple[int, ...] = (), **settings
) -> Policy:
  """Return a policy, always the same, whose actions reach their limits, with moments of its observations."""
  torch.manual_seed(0)
  ppo = PPOConfig(**{"hidden": [16, 16], "recurrent_units": 8, "precision": Precision.float32} | settings)
  network = ActorCritic(dims, actions, choices, ppo, ppo.precision)
  for parameter in network.parameters():
    torch.nn.init.normal_(parameter, std=0.5)
  count = torch.tensor([100.0]).double()
  moments = {
    group: {"count": count, "mean": torch.randn(width).double(), "m2": 400 * torch.rand(width).double()}
    for group, width in dims.items()
  }
  saved = {"obs_dims": dims, "num_actions": actions, "choices": choices, "network": network.state_dict()}
  return Policy(saved | {"observations": moments}, ppo, NUM_ENVS, torch.device("cpu"))
