"""Policies with random weights, for tests."""

import torch

from gpurobot.deploy.policy import Policy
from gpurobot.learn.estimator import estimated_columns
from gpurobot.learn.network import ActorCritic
from gpurobot.settings.algorithms import PPOConfig, Precision

NUM_ENVS, DIMS, ACTIONS = 4, {"policy": 7, "critic": 9}, 3


def make(
  dims: dict[str, int] = DIMS, actions: int = ACTIONS, choices: tuple[int, ...] = (), **settings
) -> Policy:
  """Return a policy, always the same, whose actions reach their limits, with moments of its observations."""
  torch.manual_seed(0)
  ppo = PPOConfig(**{"hidden": [16, 16], "recurrent_units": 8, "precision": Precision.float32} | settings)
  blocks = {name: ["place"] * min(7, width) + ["speed"] * (width - 7) for name, width in dims.items()}
  names = {f"column of '{group}'": columns for group, columns in blocks.items()}
  network = ActorCritic(dims, actions, choices, ppo, estimated=estimated_columns(names, ppo))
  for name, parameter in network.named_parameters():
    torch.nn.init.normal_(parameter, std=0.1 if "estimator" in name else 0.5)  # its layers are wide
  count = torch.tensor([100.0]).double()
  moments = {
    group: {"count": count, "mean": torch.randn(width).double(), "m2": 400 * torch.rand(width).double()}
    for group, width in dims.items()
  }
  saved = {"obs_dims": dims, "num_actions": actions, "choices": choices, "network": network.state_dict()}
  saved |= {"names": names} if ppo.estimate else {}
  return Policy(saved | {"observations": moments}, ppo, NUM_ENVS, torch.device("cpu"))
