"""Rollout storage [horizon, local_envs], advantages and minibatches of an iteration."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.learn.env import STYLE, VecEnv, images_of
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.optimizer import Optimizer
from gpurobot.learn.random import Random
from gpurobot.settings.config import TrainConfig, block


def td_errors(
  reward: Tensor, value: Tensor, next_value: Tensor, done: Tensor, valid: Tensor, decay: tuple[float, float]
) -> tuple[Tensor, Tensor]:
  """Return TD errors, and each step's decay of the next one's advantage: [horizon, local_envs] each.

  All tensors are [horizon, local_envs]. next_value: the value of the next observation; 0 where the task
  terminated, the value of the final observation where the time limit truncated. done: an episode ended with
  the step. Where not valid, the error is 0 and earlier steps get nothing from it.

  decay: (gamma, lambda).
  """
  gamma, lambda_ = decay
  delta = torch.where(valid, reward + gamma * next_value - value, 0)
  return delta, torch.full_like(value, gamma * lambda_).masked_fill(done | ~valid, 0)


def gae(delta: Tensor, keep: Tensor) -> Tensor:
  """Return generalised advantages [horizon, local_envs] (GAE; Schulman et al. 2015, arXiv 1506.02438).

  delta and keep [horizon, local_envs]: see `td_errors`.
  """
  advantage = torch.empty_like(delta)
  carry = torch.zeros_like(delta[0])
  for t in reversed(range(len(delta))):
    carry = torch.addcmul(delta[t], keep[t], carry, out=advantage[t])
  return advantage


def vtrace(delta: Tensor, keep: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
  """Return advantages and corrections of the values (V-trace; Espeholt et al. 2018, arXiv 1802.01561).

  delta and keep [horizon, local_envs]: see `td_errors`. ratio [horizon, local_envs]: probability of the
  action under the present policy, divided by that under the policy that acted; it counts as at most 1. With
  ratios of 1 both results are those of `gae`.

  value + correction is the paper's v_s with rho = min(1, ratio) and c = lambda rho. An advantage is
  r + gamma (V' + lambda correction') - V: the ratio of its own action is left out.
  """
  rho = ratio.clamp(max=1)
  advantage, correction = torch.empty_like(delta), torch.empty_like(delta)
  carry = torch.zeros_like(delta[0])
  for t in reversed(range(len(delta))):
    torch.addcmul(delta[t], keep[t], carry, out=advantage[t])
    carry = torch.mul(rho[t], advantage[t], out=correction[t])
  return advantage, correction


# What a rollout has before the update.
COLLECTED = ("obs", "restart", "action", "log_prob", "reward", "terminated", "truncated", "valid", STYLE)
KEPT = ("obs", "restart", "action", "policy", "log_prob", "value", "advantage", "return_", "weight")


class Rollout:
  """Storage for the samples of one iteration, allocated once.

  `samples` [horizon, local_envs] has obs (normalised, in the network's input dtype; images as they are),
  restart (an episode starts with the step), action (a sample of the policy), policy (the parameters of its
  distribution), log_prob, value (in normalised units), reward (raw), terminated, truncated, valid, and maybe
  style (see `keep_style`); the update adds advantage, return_ and weight, and learned rewards to reward. Each
  environment has `sequences` sequences of `sequence` consecutive steps, the unit of the minibatches.
  """

  kept: tuple[str, ...] = KEPT  # names of the samples that a minibatch needs

  def __init__(
    self,
    env: VecEnv,
    network: ActorCritic,
    horizon: int,
    sequence: int,
    device: torch.device,
    pinned: bool = False,
  ) -> None:
    """Allocate the storage on a device; `sequence` must divide the horizon.

    pinned: whether a GPU copies from this memory of the CPU.
    """
    self.shape, self.sequence, self.sequences = (horizon, env.num_envs), sequence, horizon // sequence
    dtype, width = network.dtype, network.state_width
    zeros = functools.partial(torch.zeros, device=device, pin_memory=pinned)
    self.samples = self._allocate(env, network, functools.partial(zeros, *self.shape))
    # Views of the same memory: one for each step [local_envs, ...], one for each sequence [sequence,
    # local_envs, ...], and one flat [horizon * local_envs, ...].
    self.steps: list[dict[str, Any]] = [step.to_dict() for step in self.samples.unbind(0)]
    self.parts = [part.to_dict() for part in self.samples.split(sequence)]
    self._flat = self.samples.select(*self.kept).reshape(-1)
    self._steps = torch.arange(sequence, device=device).unsqueeze(1) * env.num_envs
    # The recurrent state before each sequence [sequences, local_envs, state_width].
    self.states = zeros(self.sequences, env.num_envs, width, dtype=dtype)
    # The largest number of truncations of one environment in a rollout.
    slots = -(-horizon // env.least_between_truncations)
    # The raw final observations of the truncations, in order, and the recurrent state before them. Slots
    # without a truncation are never used.
    images = images_of(env)
    self.final_obs: dict[str, Tensor] = {
      group: zeros(slots, width, env.num_envs).mT  # the memory layout of tasks
      for group, width in env.obs_dims.items()
    } | {name: zeros(slots, env.num_envs, *own.shape, dtype=own.dtype) for name, own in images.items()}
    self.final_state = zeros(slots, env.num_envs, width, dtype=dtype)
    # The raw observations after the last step, the recurrent state, and whether an episode starts there.
    self.last_obs = {group: zeros(env.num_envs, width) for group, width in env.obs_dims.items()}
    self.last_obs |= {name: zeros(env.num_envs, *own.shape, dtype=own.dtype) for name, own in images.items()}
    self.last_state = zeros(env.num_envs, width, dtype=dtype)
    self.last_restart = zeros(env.num_envs, dtype=torch.bool)
    # Probability of each action under the present policy, divided by that under the policy that acted; None
    # where they are the same.
    self.ratio: Tensor | None = None
    self._used = zeros(env.num_envs, dtype=torch.int64)  # slots used

  def _allocate(self, env: VecEnv, network: ActorCritic, zeros: Callable[..., Tensor]) -> TensorDict:
    """Return memory for the samples; `zeros` takes their widths and types."""
    row = functools.partial(zeros, dtype=network.dtype)
    numbers = ("log_prob", "value", "reward", "advantage", "return_", "weight")
    flags = ("restart", "terminated", "truncated", "valid")
    obs = {group: row(width, dtype=network.input_dtype) for group, width in env.obs_dims.items()}
    images = {name: row(*image.shape, dtype=image.dtype) for name, image in images_of(env).items()}
    return TensorDict(
      {
        "obs": obs | images,
        "action": row(env.num_actions, dtype=network.head.sample_dtype or network.dtype),
        "policy": row(network.head.num_parameters),
        **{name: row() for name in numbers},
        **{name: row(dtype=torch.bool) for name in flags},
      },
      batch_size=self.shape,
    )

  def keep_style(self, width: int) -> None:
    """Store the style features before and after each step too, raw [horizon, local_envs, 2, width]."""
    pairs = torch.zeros(*self.shape, 2, width, device=self._used.device)
    self.samples[STYLE] = pairs
    for step, pair in zip(self.steps, pairs.unbind(0), strict=True):
      step[STYLE] = pair

  def restart(self) -> None:
    """Start a new iteration."""
    self._used.zero_()

  def keep_state(self, t: int, state: Tensor) -> None:
    """Store the recurrent state [local_envs, state_width] before step t if a sequence starts there."""
    if t % self.sequence == 0:
      self.states[t // self.sequence].copy_(state)

  def keep_final(self, final_obs: TensorDictBase, state: Tensor, truncated: Tensor) -> None:
    """Store final groups and images [local_envs, ...] and the state before where an episode is truncated.

    state: [local_envs, state_width]. truncated: [local_envs] bool.
    """
    for slot, kept_state in enumerate(self.final_state):
      here = truncated & (self._used == slot)
      for name, kept in self.final_obs.items():
        new, old = final_obs[name], kept[slot]
        if old.is_contiguous():
          torch.where(here.view(-1, *[1] * (new.ndim - 1)), new, old, out=old)
        else:  # a group, transposed, as in memory
          torch.where(here, new.T, old.T, out=old.T)
      torch.where(here.unsqueeze(-1), state, kept_state, out=kept_state)
    self._used += truncated

  def keep_last(self, obs: TensorDictBase, state: Tensor, restart: Tensor) -> None:
    """Store what follows the last step: raw observations [local_envs, ...], state and restart."""
    for group, kept in self.last_obs.items():
      kept.copy_(obs[group])
    self.last_state.copy_(state)
    self.last_restart.copy_(restart)

  def take(self, other: "Rollout") -> None:
    """Copy what another rollout has collected, from any device."""
    names = [name for name in self.samples.keys() if name in COLLECTED and name != "obs"]  # noqa: SIM118
    pairs = [(self.samples[name], other.samples[name]) for name in names]
    for own, new in (
      (self.samples["obs"], other.samples["obs"]),
      (self.final_obs, other.final_obs),
      (self.last_obs, other.last_obs),
    ):
      pairs += [(own[group], new[group]) for group in self.last_obs]
    for name in ("states", "final_state", "last_state", "last_restart"):
      pairs.append((getattr(self, name), getattr(other, name)))
    for mine, theirs in pairs:
      mine.copy_(theirs, non_blocking=True)

  def advantages(
    self, reward: Tensor, value: Tensor, last: Tensor, final: Tensor | None, decay: tuple[float, float]
  ) -> tuple[Tensor, Tensor]:
    """Return advantages and corrections of the values [horizon, local_envs], see `vtrace`.

    All values are in the unit of the transformed reward.

    reward [horizon, local_envs]: transformed. value [horizon, local_envs]: of each step's observation. last
    [local_envs]: of the observation after the last step. final [slots, local_envs]: of the stored final
    observations; None: the next episode's values follow a truncated one. decay: (gamma, lambda).
    """
    terminated, truncated = self.samples["terminated"], self.samples["truncated"]
    next_value = torch.cat([value[1:], last.unsqueeze(0)]).masked_fill(terminated, 0)
    if final is not None:  # if an environment truncates more often than it declares, the last slot is used
      slot = (truncated.cumsum(0) - 1).clamp(0, len(final) - 1)
      next_value = torch.where(truncated, final.gather(0, slot), next_value)
    done = terminated | truncated
    delta, keep = td_errors(reward, value, next_value, done, self.samples["valid"], decay)
    if self.ratio is not None:
      return vtrace(delta, keep, self.ratio)
    advantage = gae(delta, keep)
    return advantage, advantage

  def weigh_advantages(self) -> None:
    """Multiply the advantages by V-trace's truncated ratio, unless the present policy acted."""
    if self.ratio is not None:
      self.samples["advantage"].mul_(self.ratio.clamp(max=1))

  def minibatch(self, rows: Tensor) -> tuple[TensorDictBase, Tensor]:
    """Return samples [sequence, n] and the states [n, state_width] before them, for rows [n].

    Row r is sequence r // local_envs of environment r % local_envs; `MinibatchSampler` draws the rows.
    """
    local_envs = self.shape[1]
    first = rows + rows // local_envs * ((self.sequence - 1) * local_envs)  # row of the flattened storage
    places = first + self._steps
    # On a CPU x[places] takes 4 to 14 times as long.
    batch = self._flat.apply(
      lambda x: x.index_select(0, places.flatten()).unflatten(0, places.shape), batch_size=places.shape
    )
    return batch, self.states.flatten(0, 1).index_select(0, rows)


class MinibatchSampler:
  """Minibatch sampler: the same for any number of ranks, with equally many sequences of each rank.

  A block is the smallest number of environments whose sequences divide evenly among the minibatches; a random
  permutation within each block assigns its sequences to minibatches. Random numbers are keyed by the global
  index of the block.
  """

  def __init__(self, sequences: int, minibatches: int, block: int, random: Random) -> None:
    """Number the rows; there are random.num_envs blocks of `block` environments, `sequences` rows each."""
    self.random = random
    blocks, device = random.num_envs, random.step.device
    sequence = torch.arange(sequences, device=device)
    env = torch.arange(blocks * block, device=device).view(blocks, 1, block)
    self._rows = (sequence[:, None] * (blocks * block) + env).flatten(1)  # [blocks, sequences * block]
    # The rows of each minibatch of the current epoch [minibatches, n]; see Rollout.minibatch.
    self.minibatches = self._rows.new_zeros(minibatches, self._rows.numel() // minibatches)

  def draw(self) -> None:
    """Draw new minibatches."""
    self.random.advance()
    count = self._rows.shape[1]
    order = self.random.bits("ppo.shuffle", (count,)).argsort(dim=1, stable=True)
    dealt = self._rows.gather(1, order).unflatten(1, (len(self.minibatches), -1))
    self.minibatches.copy_(dealt.transpose(0, 1).flatten(1))


def make_sampler(rollout: Rollout, config: TrainConfig, world: World) -> MinibatchSampler:
  """Return the sampler of a rollout's minibatches, with random numbers of its own."""
  size, device = block(config.ppo), rollout.last_restart.device
  blocks = len(rollout.last_restart) // size
  dealer = Random(config.seed, blocks, world.rank * blocks, device)
  return MinibatchSampler(rollout.sequences, config.ppo.minibatches, size, dealer)


class MinibatchEpochs:
  """Gradient steps, one for each minibatch of an epoch, for any number of ranks."""

  def __init__(
    self,
    sampler: MinibatchSampler,
    optimizer: Optimizer,
    executor: Executor,
    clock: Clock,
    *,
    tape: bool,
  ) -> None:
    """Keep what a step needs. tape: whether it is of torch's operations alone, see `Tape`."""
    self.sampler, self.optimizer, self.executor, self.clock = sampler, optimizer, executor, clock
    self._tape = tape
    self.rows = torch.zeros_like(sampler.minibatches[0])  # of the present minibatch [n]

  def draw(self) -> range:
    """Draw the minibatches of an epoch; return their indices, which `step` takes in this order."""
    self.executor.run(self.sampler.draw)
    return range(len(self.sampler.minibatches))

  def step(self, index: int, differentiate: Callable[[], None], step_optimizer: Callable[[], None]) -> None:
    """Take the gradient step of a minibatch.

    differentiate: computes the gradient on this rank's `rows`. step_optimizer: takes a step with the gradient
    of all ranks.
    """
    self.clock.begin("update/minibatch")
    self.rows.copy_(self.sampler.minibatches[index])
    self.executor.run_parts(differentiate, tape=self._tape)
    self.clock.begin("update/all-reduce")
    self.optimizer.reduce()
    self.clock.begin("update/optimizer")
    self.executor.run(step_optimizer, tape=self._tape)
