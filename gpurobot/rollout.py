"""The samples of one iteration: [horizon, num_envs] storage, advantages, minibatches, episode statistics."""

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from gpurobot.env import VecEnv
from gpurobot.random import Random


def gae(
  reward: Tensor, value: Tensor, next_value: Tensor, done: Tensor, valid: Tensor, decay: tuple[float, float]
) -> Tensor:
  """Return generalised advantages [horizon, num_envs] (Schulman et al. 2015, arXiv 1506.02438).

  next_value [horizon, num_envs] is the value of the state that a step led to: 0 where the task ended, that of
  the final observation where the time limit did. done: an episode ended with the step. Where not valid the
  advantage is 0 and nothing flows back. decay: (gamma, lambda).
  """
  gamma, lambda_ = decay
  delta = torch.where(valid, reward + gamma * next_value - value, 0)
  keep = torch.where(done | ~valid, 0, gamma * lambda_).to(value.dtype)
  advantage = torch.empty_like(value)
  carry = torch.zeros_like(value[0])
  for t in reversed(range(len(value))):
    carry = torch.addcmul(delta[t], keep[t], carry, out=advantage[t])
  return advantage


class Rollout:
  """Storage for the samples of one iteration, allocated once.

  `samples` [horizon, num_envs] holds obs (normalised, in the network's input type), action, mean, log_prob,
  value (in normalised units), reward (shaped), terminated, truncated and valid.
  """

  def __init__(self, env: VecEnv, horizon: int, dtype: torch.dtype, input_dtype: torch.dtype) -> None:
    shape, device = (horizon, env.num_envs), env.device
    self.horizon = horizon

    def zeros(*width: int, kind: torch.dtype = dtype) -> Tensor:
      return torch.zeros(*shape, *width, dtype=kind, device=device)

    self.samples = TensorDict(
      {
        "obs": {group: zeros(width, kind=input_dtype) for group, width in env.obs_dims.items()},
        "action": zeros(env.num_actions),
        "mean": zeros(env.num_actions),
        **{name: zeros() for name in ("log_prob", "value", "reward")},
        **{name: zeros(kind=torch.bool) for name in ("terminated", "truncated", "valid")},
      },
      batch_size=shape,
    )
    # One environment's time limits are at least max_episode_steps apart: so many can fall into one rollout.
    slots = -(-horizon // env.max_episode_steps)
    # Raw, at the time limits of this rollout in their order; what no time limit wrote is never used.
    self.final_obs: dict[str, Tensor] = {
      group: torch.zeros(slots, env.num_envs, width, device=device) for group, width in env.obs_dims.items()
    }
    self._used = torch.zeros(env.num_envs, dtype=torch.int64, device=device)  # slots filled

  def restart(self) -> None:
    """Begin a new iteration."""
    self._used.zero_()

  def keep_final(self, final_obs: TensorDictBase, truncated: Tensor) -> None:
    """Keep the final observations where the time limit [num_envs] struck."""
    for group, kept in self.final_obs.items():
      for slot, obs in enumerate(kept.unbind(0)):
        here = (truncated & (self._used == slot)).unsqueeze(-1)
        torch.where(here, final_obs[group], obs, out=obs)
    self._used += truncated

  def advantages(self, value: Tensor, last: Tensor, final: Tensor, decay: tuple[float, float]) -> Tensor:
    """Return the advantages [horizon, num_envs], all values in the unit of the shaped reward.

    value [horizon, num_envs]: of each step's observation. last [num_envs]: of the observation after the last
    step. final [slots, num_envs]: of the kept final observations.
    """
    terminated, truncated = self.samples["terminated"], self.samples["truncated"]
    slot = (truncated.cumsum(0) - 1).clamp(min=0)
    next_value = torch.cat([value[1:], last.unsqueeze(0)])
    next_value = torch.where(truncated, final.gather(0, slot), next_value).masked_fill(terminated, 0)
    done = terminated | truncated
    return gae(self.samples["reward"], value, next_value, done, self.samples["valid"], decay)


class Episodes:
  """Raw returns and lengths: of running episodes, and summed over those that ended since the last `take`."""

  def __init__(self, num_envs: int, device: torch.device) -> None:
    self.running = torch.zeros(2, num_envs, device=device)  # return, length [steps]
    self._sums = torch.zeros(
      3, dtype=torch.float64, device=device
    )  # return, length, number of ended episodes

  def add(self, reward: Tensor, ended: Tensor, valid: Tensor) -> None:
    """Count one step of each environment; an episode that ends with an invalid step is dropped."""
    self.running[0] += torch.where(valid, reward, 0)
    self.running[1] += 1
    counted = (ended & valid).to(torch.float64)
    self._sums[:2] += self.running.to(torch.float64) @ counted
    self._sums[2] += counted.sum()
    self.running.masked_fill_(ended | ~valid, 0)

  def take(self) -> Tensor:
    """Return the sums of return and length and the number of ended episodes [3], and start again."""
    sums = self._sums.clone()
    self._sums.zero_()
    return sums


class Means:
  """Means of named quantities [num_envs] over all steps since the last `take`; the first step names them."""

  def __init__(self, device: torch.device) -> None:
    self.names: list[str] = []
    self._sums = torch.zeros(1, dtype=torch.float64, device=device)  # weight, then one sum for each name

  def add(self, values: dict[str, Tensor], weight: Tensor) -> None:
    """Count one step of each environment, weight [num_envs] bool."""
    if list(values) != self.names:
      self.names = list(values)
      self._sums = self._sums.new_zeros(1 + len(values))
    rows = torch.stack([torch.ones_like(weight, dtype=torch.float32), *values.values()])
    self._sums += torch.where(weight, rows, 0).sum(1)

  def take(self) -> Tensor:
    """Return the sum of weights and the sum of each quantity [1 + len(names)], and start again."""
    sums = self._sums.clone()
    self._sums.zero_()
    return sums


class Shuffle:
  """Draws minibatches: the same for any number of ranks, equally many samples of every rank in each.

  A block is the fewest environments whose samples fill all minibatches evenly; a permutation within each
  block deals its samples out to the minibatches. Random numbers are keyed by the block's global index.
  """

  def __init__(self, horizon: int, minibatches: int, block: int, random: Random) -> None:
    """Deal out horizon * block samples of each of random's blocks."""
    self.minibatches, self.random = minibatches, random
    blocks, device = random.num_envs, random.step.device
    t = torch.arange(horizon, device=device)
    env = torch.arange(blocks * block, device=device).view(blocks, 1, block)
    self._samples = (t[:, None] * (blocks * block) + env).flatten(
      1
    )  # [blocks, horizon * block]: rows of the storage

  def draw(self) -> Tensor:
    """Return each minibatch's samples, as rows of the flattened storage [minibatches, n], drawn anew."""
    self.random.advance()
    count = self._samples.shape[1]
    order = self.random.bits("ppo.shuffle", (count,)).argsort(dim=1, stable=True)
    return self._samples.gather(1, order).unflatten(1, (self.minibatches, -1)).transpose(0, 1).flatten(1)
