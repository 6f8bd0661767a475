"""Record of what a policy of humanoid_amp does, as a reference whose style others learn.

`python examples/record_style.py <run> walks.npz`, then `python train.py task=humanoid_amp
env.motion=walks.npz`. Robots act with the noise of their training, at commands spread over all of the task's.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from gpurobot.deploy import trained
from gpurobot.learn.random import Random
from tasks.humanoid_amp import Task
from tasks.motion.transitions import Transitions, write

ROBOTS, STEPS = 256, 400  # robots, and control steps of each
FIRST, EVERY = 100, 23  # step of the first pair, when all walk as commanded, and steps between two pairs
TURNS = 0.618  # part of the range of yaw rates between two robots: it is spread at any range of speeds


def record(env: Task, policy: Callable[..., Tensor], steps: int, first: int) -> Transitions:
  """Return pairs of the robots that are still up after some control steps, the first after `first` steps."""
  env.reset()
  share = torch.arange(env.num_envs) / env.num_envs
  low, high = env.bounds
  env.command.copy_(low + (high - low) * torch.stack([share, env.num_envs * TURNS * share % 1], 1))
  wanted, up = env.command.clone(), torch.ones(env.num_envs, dtype=torch.bool)
  restart, poses, rates = up, list[Tensor](), list[Tensor]()
  obs = env.observations.restart(env.observe(), restart)
  for _ in range(steps):
    step = env.step(policy(obs, restart))
    obs, restart = step["obs"], step["terminated"] | ~step["valid"]
    up = up & ~restart
    poses.append(env.sim.qpos.to(torch.float32, copy=True))
    rates.append(env.sim.qvel.to(torch.float32, copy=True))
  times = torch.arange(first, steps - 1, EVERY)
  both = torch.stack([times, times + 1], 1)
  qpos, qvel = (torch.stack(part)[both].transpose(1, 2)[:, up].flatten(0, 1) for part in (poses, rates))
  qpos[..., :2] -= qpos[:, :1, :2].clone()  # where a robot has come to says nothing of its style
  return Transitions(qpos, qvel, wanted[up].repeat(len(times), 1))


def load(run: str) -> trained.Trained:
  """Return a policy and robots whose commands do not change."""
  words = [f"checkpoint={run}", "env.command_seconds=1000", f"env.episode_steps={STEPS + 1}"]
  return trained.load(trained.parse(trained.PolicySettings(), words), ROBOTS)


if __name__ == "__main__":
  parser = ArgumentParser(description="Record what a policy of humanoid_amp does.")
  parser.add_argument("run", help="run folder")
  parser.add_argument("file", help=".npz file to write")
  given = parser.parse_args()
  start = load(given.run)
  start.policy.random = Random(0, ROBOTS)
  found = record(start.env, start.policy, STEPS, FIRST)
  write(Path(given.file), found)
  print(f"{given.file}: {len(found.qpos)} pairs")
