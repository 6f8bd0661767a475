"""Training with the PPO of rsl_rl: `python examples/ppo_rsl_rl.py --task quadruped`."""

from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from gpurobot.adapters.rsl_rl import RslRlEnv


def settings(seed: int, has_critic_group: bool) -> dict[str, Any]:
  """Return the settings of the runner; the critic uses the observation group `critic` if there is one."""
  model = {"class_name": "MLPModel", "hidden_dims": [128, 64], "activation": "elu", "obs_normalization": True}
  return {
    "seed": seed,
    "num_steps_per_env": 24,
    "save_interval": 100,
    "obs_groups": {"actor": ["policy"], "critic": ["critic" if has_critic_group else "policy"]},
    "actor": {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
    "critic": dict(model),
    "algorithm": {"class_name": "PPO", "num_learning_epochs": 5, "num_mini_batches": 4, "entropy_coef": 0.0},
  }


def train(task: str, num_envs: int, steps: int, seed: int, folder: str) -> float:
  """Train for `steps` environment steps; return the mean return of the last 100 episodes."""
  torch.manual_seed(seed)
  env = RslRlEnv(task, num_envs, seed=seed)
  config = settings(seed, "critic" in env.get_observations().keys())  # noqa: SIM118 a TensorDict is no dict
  runner = OnPolicyRunner(env, config, folder)
  runner.learn(max(1, steps // (num_envs * config["num_steps_per_env"])))
  returns = runner.logger.rewbuffer
  return sum(returns) / max(len(returns), 1)


if __name__ == "__main__":
  parser = ArgumentParser(description=__doc__, formatter_class=ArgumentDefaultsHelpFormatter)
  parser.add_argument("--task", default="ant", help="name or file of a task")
  parser.add_argument("--num_envs", default=1024, type=int, help="number of environments")
  parser.add_argument("--steps", default=3_000_000, type=int, help="total number of environment steps")
  parser.add_argument("--seed", default=0, type=int, help="random seed of policy and environments")
  parser.add_argument("--folder", default="runs/rsl_rl", help="folder of models and TensorBoard files")
  print(f"return: {train(**vars(parser.parse_args())):.4g}")
