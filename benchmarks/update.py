"""Speed of the trainer without physics, at the sizes of Ant: python -m benchmarks.update [ppo.key=value ...].

The environment returns fixed random numbers. The program prints `name: value` lines: environment steps per
second of policy, update and both, and the minimum of floating-point operations per step.
"""

import itertools
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from benchmarks.report import start
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.settings.algorithms import PPOConfig
from gpurobot.settings.config import TrainConfig, assign, leaves, pairs

OBS, ACTIONS = 60, 8
REPEATS = 8


class Table:
  """Environment with random observations and rewards [num_envs, ...] that are the same at every step."""

  max_episode_steps = least_between_truncations = 1000
  num_actions = ACTIONS
  choices: tuple[int, ...] = ()
  mirror: Mapping[str, tuple[Tensor, Tensor]] | None = None
  obs_dims = {"policy": OBS}  # noqa: RUF012

  def __init__(self, num_envs: int, device: torch.device) -> None:
    self.num_envs, self.device = num_envs, device
    self.begin_part: Callable[[str], None] = lambda _part: None
    flag = torch.zeros(num_envs, dtype=torch.bool, device=device)
    obs = {"policy": torch.randn(num_envs, OBS, device=device)}
    reward = torch.randn(num_envs, device=device)
    entries = {"obs": obs, "final_obs": obs, "reward": reward, "reward_terms": {"a": reward}, "metrics": {}}
    entries |= {"terminated": flag, "truncated": flag, "valid": ~flag}
    self._step = TensorDict(entries, batch_size=[num_envs])

  def reset(self) -> TensorDict:
    """Return the observation [num_envs, OBS]."""
    return self._step["obs"]

  def step(self, _action: Tensor) -> TensorDict:
    """Return the fixed step [num_envs]."""
    return self._step

  def counters(self) -> dict[str, Tensor]:
    """Return no counters."""
    return {}

  def diverged(self) -> TensorDict:
    """Return no states."""
    return TensorDict()

  def state_dict(self) -> dict[str, Any]:
    """Return an empty state."""
    return {}

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Ignore the state."""


def floor(ppo: PPOConfig, obs: int, actions: int) -> int:
  """Return the minimum of floating-point operations per step: one policy evaluation, and the epochs.

  The network has a shared trunk. Biases, nonlinearities and the loss are not counted.
  """
  sizes = [obs, *ppo.hidden]
  forward = 2 * (sum(a * b for a, b in itertools.pairwise(sizes)) + sizes[-1] * (actions + 1))
  backward = 2 * forward - 2 * obs * ppo.hidden[0]  # no gradient of the observation
  return forward + ppo.epochs * (forward + backward)


def main(argv: list[str]) -> None:
  """Time collect and update, and print the best of several iterations of each."""
  config = TrainConfig()
  config = assign(config, pairs(argv, leaves(config)))
  world = World()
  device = world.device(config.device)
  world.use(device, config.threads)
  learner = PPO(Table(config.num_envs, device), config, world)
  best = {"policy": math.inf, "update": math.inf}
  for _ in range(REPEATS):
    for name, work in (("policy", learner.collect), ("update", learner.update)):
      start = time.perf_counter()
      work()
      if learner.env.device.type == "cuda":
        torch.cuda.synchronize()
      best[name] = min(best[name], time.perf_counter() - start)
  samples, ppo = config.num_envs * config.ppo.horizon, config.ppo
  flop = floor(ppo, OBS, ACTIONS)
  print(f"update.settings: {learner.describe()}")
  for name, seconds in best.items():
    print(f"update.{name}_steps_per_second: {samples / seconds:.0f}")
  total = sum(best.values())
  print(f"update.steps_per_second: {samples / total:.0f}")
  print(f"update.floor_kflop_per_step: {flop / 1e3:.0f}")
  print(f"update.gflop_per_second: {flop * samples / total / 1e9:.0f}")


if __name__ == "__main__":
  start(main)
