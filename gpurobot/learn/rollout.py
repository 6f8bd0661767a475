"""The samples of one iteration: [horizon, local_envs] storage, advantages, minibatches."""

from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from gpurobot.learn.env import VecEnv
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.random import Random


def gae(
  reward: Tensor, value: Tensor, next_value: Tensor, done: Tensor, valid: Tensor, decay: tuple[float, float]
) -> Tensor:
  """Return generalised advantages [horizon, local_envs] (Schulman et al. 2015, arXiv 1506.02438).

  next_value [horizon, local_envs] is the value of the state that a step led to: 0 where the task ended, that
  of the final observation where the time limit did. done: an episode ended with the step. Where not valid
  the advantage is 0 and nothing flows back. decay: (gamma, lambda).
  """
  gamma, lambda_ = decay
  delta = torch.where(valid, reward + gamma * next_value - value, 0)
  keep = torch.where(done | ~valid, 0, gamma * lambda_).to(value.dtype)
  advantage = torch.empty_like(value)
  carry = torch.zeros_like(value[0])
  for t in reversed(range(len(value))):
    carry = torch.addcmul(delta[t], keep[t], carry, out=advantage[t])
  return advantage


KEPT = ("obs", "restart", "action", "policy", "log_prob", "value", "advantage", "return_", "weight")


class Rollout:
  """Storage for the samples of one iteration, allocated once.

  `samples` [horizon, local_envs] holds of the rollout: obs (normalised, in the network's input type), restart
  (an episode starts with the step), action (a sample of the policy), policy (the parameters of its
  distribution), log_prob, value (in normalised units), reward (transformed), terminated, truncated and valid;
  and of what follows: advantage, return_ and weight. Each environment has `sequences` of `sequence` steps
  that stay together in a minibatch.
  """

  def __init__(self, env: VecEnv, network: ActorCritic, horizon: int, sequence: int) -> None:
    """Allocate the storage; the length of a sequence divides the horizon."""
    self.shape, self.sequence, self.sequences = (horizon, env.num_envs), sequence, horizon // sequence
    self.device, dtype, head = env.device, network.dtype, network.head
    numbers = ("log_prob", "value", "reward", "advantage", "return_", "weight")
    flags = ("restart", "terminated", "truncated", "valid")
    self.samples = TensorDict(
      {
        "obs": {group: self._zeros(width, kind=network.input_dtype) for group, width in env.obs_dims.items()},
        "action": self._zeros(env.num_actions, kind=head.sample_dtype or dtype),
        "policy": self._zeros(head.num_parameters, kind=dtype),
        **{name: self._zeros(kind=dtype) for name in numbers},
        **{name: self._zeros(kind=torch.bool) for name in flags},
      },
      batch_size=self.shape,
    )
    # The same memory: of each step, and of all of them together.
    self.steps: list[dict[str, Any]] = [step.to_dict() for step in self.samples.unbind(0)]
    self._flat = self.samples.select(*KEPT).reshape(-1)
    self._steps = torch.arange(sequence, device=env.device).unsqueeze(1) * env.num_envs
    # The network's state before each sequence, [sequences, local_envs, state_width].
    self.states = torch.zeros(
      self.sequences, env.num_envs, network.state_width, dtype=dtype, device=env.device
    )
    # So many time limits of one environment can fall into one rollout.
    slots = -(-horizon // env.least_between_truncations)
    # Of the time limits of this rollout in their order: the final observations, raw, and the network's state
    # before them. What no time limit wrote is never used.
    self.final_obs: dict[str, Tensor] = {
      group: torch.zeros(slots, width, env.num_envs, device=env.device).mT  # as tasks have them in memory
      for group, width in env.obs_dims.items()
    }
    self.final_state = self.states.new_zeros(slots, *self.states.shape[1:])
    self._used = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)  # slots filled

  def _zeros(self, *width: int, kind: torch.dtype) -> Tensor:
    return torch.zeros(*self.shape, *width, dtype=kind, device=self.device)

  def restart(self) -> None:
    """Begin a new iteration."""
    self._used.zero_()

  def keep_state(self, t: int, state: Tensor) -> None:
    """Keep the network's state [local_envs, state_width] before step t, where a sequence starts with it."""
    if t % self.sequence == 0:
      self.states[t // self.sequence].copy_(state)

  def keep_final(self, final_obs: TensorDictBase, state: Tensor, truncated: Tensor) -> None:
    """Keep final observations, and the network's state before them, where truncated [local_envs]."""
    for slot, kept_state in enumerate(self.final_state):
      here = (truncated & (self._used == slot)).unsqueeze(-1)
      for group, kept in self.final_obs.items():  # turned, as it lies in memory
        torch.where(here.T, final_obs[group].T, kept[slot].T, out=kept[slot].T)
      torch.where(here, state, kept_state, out=kept_state)
    self._used += truncated

  def advantages(self, value: Tensor, last: Tensor, final: Tensor, decay: tuple[float, float]) -> Tensor:
    """Return the advantages [horizon, local_envs], all values in the unit of the transformed reward.

    value [horizon, local_envs]: of each step's observation. last [local_envs]: of the observation after the
    last step. final [slots, local_envs]: of the kept final observations.
    """
    terminated, truncated = self.samples["terminated"], self.samples["truncated"]
    # Where an environment broke its promise, the last slot has to do.
    slot = (truncated.cumsum(0) - 1).clamp(0, len(final) - 1)
    next_value = torch.cat([value[1:], last.unsqueeze(0)])
    next_value = torch.where(truncated, final.gather(0, slot), next_value).masked_fill(terminated, 0)
    done = terminated | truncated
    return gae(self.samples["reward"], value, next_value, done, self.samples["valid"], decay)

  def minibatch(self, rows: Tensor) -> tuple[TensorDictBase, Tensor]:
    """Return samples [sequence, n], and the states before them, by the rows [n] that `MinibatchSampler` drew.

    Row r is sequence r // local_envs of environment r % local_envs.
    """
    local_envs = self.shape[1]
    first = rows + rows // local_envs * ((self.sequence - 1) * local_envs)  # row of the flattened storage
    return self._flat[first + self._steps], self.states.flatten(0, 1)[rows]


class MinibatchSampler:
  """Draws minibatches: the same for any number of ranks, equally many sequences of every rank in each.

  A block is the fewest environments whose sequences fill all minibatches evenly; a permutation within each
  block deals its sequences out to the minibatches. Random numbers are keyed by the block's global index.
  """

  def __init__(self, sequences: int, minibatches: int, block: int, random: Random) -> None:
    """Deal out the sequences of each environment in each of random's blocks of environments."""
    self.random = random
    blocks, device = random.num_envs, random.step.device
    sequence = torch.arange(sequences, device=device)
    env = torch.arange(blocks * block, device=device).view(blocks, 1, block)
    self._rows = (sequence[:, None] * (blocks * block) + env).flatten(1)  # [blocks, sequences * block]
    # Of the present epoch: the rows of each minibatch [minibatches, n]; see Rollout.minibatch.
    self.minibatches = self._rows.new_zeros(minibatches, self._rows.numel() // minibatches)

  def draw(self) -> None:
    """Draw new minibatches."""
    self.random.advance()
    count = self._rows.shape[1]
    order = self.random.bits("ppo.shuffle", (count,)).argsort(dim=1, stable=True)
    dealt = self._rows.gather(1, order).unflatten(1, (len(self.minibatches), -1))
    self.minibatches.copy_(dealt.transpose(0, 1).flatten(1))
