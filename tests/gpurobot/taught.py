"""Teachers and students, for tests."""

import torch

from gpurobot.device.distributed import World
from gpurobot.learn.agent import Agent, Spaces, actor_critic
from gpurobot.learn.distill import Distill
from gpurobot.learn.random import Random
from gpurobot.learn.teacher import Teacher
from gpurobot.settings.algorithms import PPOConfig, Precision
from gpurobot.settings.config import assign, defaults
from gpurobot.training import make_learner
from tests.gpurobot import toy


def make_teacher(
  num_envs: int, dims=None, choices=(), seed: int = 0, device: str = "cpu", **settings
) -> Teacher:
  """Return a teacher with random weights that act, the same on any device, with moments as after training."""
  torch.manual_seed(seed)
  ppo = PPOConfig(**{"hidden": [16, 16], "precision": Precision.float64, "recurrent_units": 8} | settings)
  spaces = Spaces(dict(dims or toy.Task.obs_dims), 2, tuple(choices))
  agent: Agent = actor_critic(spaces, ppo, torch.device(device))
  for parameter in agent.network.parameters():
    parameter.data.copy_(0.5 * torch.randn(parameter.shape))
  for moments in agent.observations.moments.values():
    seen = 0.1 + torch.randn(100, moments.mean.numel())
    moments.accumulate(seen.to(device), torch.ones(100, device=device))
  agent.observations.merge()
  return Teacher(f"teacher{seed}", agent, num_envs)


def make_student(teachers, module=toy, num_envs: int = 32, **values) -> Distill:
  """Return a student of teachers; values are settings by key."""
  fixed = {"algorithm": "distill", "teacher": "given", "num_envs": num_envs, "ppo.precision": "float64"}
  config = assign(defaults(module), fixed | values)
  env = module.Task(config.env, num_envs, random=Random(0, num_envs))
  learner = make_learner(env, config, World(), teachers)
  assert isinstance(learner, Distill)
  return learner
