"""Training with the PPO of rl_games: `python examples/ppo_rl_games.py --task ant`."""

from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser
from pathlib import Path
from typing import Any

import torch
from rl_games.common.algo_observer import DefaultAlgoObserver
from rl_games.torch_runner import Runner

from gpurobot.adapters import rl_games

HORIZON, MINIBATCHES = 16, 4
NETWORK = {
  "name": "actor_critic",
  "separate": False,
  "space": {
    "continuous": {
      "mu_activation": "None",
      "sigma_activation": "None",
      "mu_init": {"name": "default"},
      "sigma_init": {"name": "const_initializer", "val": 0},
      "fixed_sigma": True,
    }
  },
  "mlp": {"units": [128, 64], "activation": "elu", "initializer": {"name": "default"}},
}
ALGORITHM = {
  "device": "cpu",
  "device_name": "cpu",
  "torch_compile": False,  # takes a minute and is no faster for small networks
  "horizon_length": HORIZON,
  "mini_epochs": 4,
  "normalize_input": True,
  "normalize_value": True,
  "normalize_advantage": True,
  "value_bootstrap": True,
  "reward_shaper": {"scale_value": 0.1},
  "gamma": 0.99,
  "tau": 0.95,
  "learning_rate": 3e-4,
  "lr_schedule": "adaptive",
  "kl_threshold": 0.008,
  "e_clip": 0.2,
  "clip_value": True,
  "critic_coef": 2,
  "entropy_coef": 0.0,
  "bounds_loss_coef": 1e-4,
  "truncate_grads": True,
  "grad_norm": 1.0,
}


def settings(task: str, num_envs: int, steps: int, seed: int, folder: str) -> dict[str, Any]:
  """Return the settings of the runner."""
  config = {
    "name": Path(task).stem,
    "env_name": rl_games.NAME,
    "env_config": {"task": task, "seed": seed},
    "num_actors": num_envs,
    "minibatch_size": num_envs * HORIZON // MINIBATCHES,
    "max_epochs": max(1, steps // (num_envs * HORIZON)),
    "train_dir": folder,
    **ALGORITHM,
  }
  return {
    "params": {
      "algo": {"name": "a2c_continuous"},
      "model": {"name": "continuous_a2c_logstd"},
      "network": NETWORK,
      "config": config,
      "seed": seed,
      "torch_threads": 0,  # keeps torch's number of threads
    }
  }


class LastReturn(DefaultAlgoObserver):
  """Observer that gives access to the mean return of the last episodes."""

  def mean(self) -> float:
    """Return the mean return of the last episodes."""
    return float(self.algo.game_rewards.get_mean()[0])


def train(task: str, num_envs: int, steps: int, seed: int, folder: str) -> float:
  """Train for `steps` environment steps; return the mean return of the last 100 episodes."""
  torch.manual_seed(seed)  # the runner takes a seed of 0 for none
  rl_games.register()
  observer = LastReturn()
  runner = Runner(observer)
  runner.load(settings(task, num_envs, steps, seed, folder))
  runner.run({"train": True})
  return observer.mean()


if __name__ == "__main__":
  parser = ArgumentParser(description=__doc__, formatter_class=ArgumentDefaultsHelpFormatter)
  parser.add_argument("--task", default="ant", help="name or file of a task")
  parser.add_argument("--num_envs", default=1024, type=int, help="number of environments")
  parser.add_argument("--steps", default=3_000_000, type=int, help="total number of environment steps")
  parser.add_argument("--seed", default=0, type=int, help="random seed of policy and environments")
  parser.add_argument("--folder", default="runs/rl_games", help="folder of models and TensorBoard files")
  print(f"return: {train(**vars(parser.parse_args())):.4g}")
