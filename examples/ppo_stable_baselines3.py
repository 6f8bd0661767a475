"""Training with the PPO of Stable-Baselines3: `python examples/ppo_stable_baselines3.py --task ant`."""

from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from gpurobot.adapters.stable_baselines3 import StableBaselinesEnv


def train(task: str, num_envs: int, steps: int, seed: int) -> float:
  """Train for `steps` environment steps; return the mean return of the last 100 episodes."""
  env = VecNormalize(VecMonitor(StableBaselinesEnv(task, num_envs)))
  model = PPO(
    "MlpPolicy",
    env,
    n_steps=16,
    batch_size=max(64, num_envs * 16 // 4),
    n_epochs=4,
    seed=seed,
    device="cpu",
    policy_kwargs={"net_arch": [128, 64], "activation_fn": torch.nn.ELU},
  )
  model.learn(steps)
  returns = [episode["r"] for episode in model.ep_info_buffer]
  return sum(returns) / max(len(returns), 1)


if __name__ == "__main__":
  parser = ArgumentParser(description=__doc__, formatter_class=ArgumentDefaultsHelpFormatter)
  parser.add_argument("--task", default="ant", help="name or file of a task")
  parser.add_argument("--num_envs", default=1024, type=int, help="number of environments")
  parser.add_argument("--steps", default=3_000_000, type=int, help="total number of environment steps")
  parser.add_argument("--seed", default=0, type=int, help="random seed of policy and environments")
  print(f"return: {train(**vars(parser.parse_args())):.4g}")
