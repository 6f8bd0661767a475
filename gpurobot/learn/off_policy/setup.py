"""Checks of the settings of an off-policy algorithm, and its sampler."""

import torch
from torch import Tensor

from gpurobot.device.distributed import World
from gpurobot.device.usage import total_memory
from gpurobot.learn.agent import resolve
from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.image_setup import check_images
from gpurobot.learn.network import weight_dtype
from gpurobot.learn.off_policy.prioritized import PrioritizedSampler
from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import Replay, ReplaySampler, StoredObs, blocks, replay_bytes
from gpurobot.settings.algorithms import OffPolicyConfig
from gpurobot.settings.config import ConfigError, TrainConfig, off_policy, suggestion

MOST = 8192  # transitions drawn at once, if a batch is not larger
PRIORITY_STEPS = 1_000_000  # in which priority_beta rises to 1: as many as the buffer holds by default
SHARE = 0.8  # of the memory of a device that a replay buffer may take


def check(config: TrainConfig, env: VecEnv) -> None:
  """Raise ConfigError if settings contradict each other or do not fit the environment."""
  name, own = config.algorithm, off_policy(config)
  check_images(str(name), own, env)
  length, least = own.buffer_size // config.num_envs, max(own.horizon, own.n_step + 1)
  if env.choices:
    raise ConfigError(
      f"algorithm={name} needs continuous actions, and the task's are discrete: write algorithm=ppo"
    )
  if own.buffer_size < own.batch_size:
    raise ConfigError(
      f"{name}.buffer_size={own.buffer_size} is less than {name}.batch_size={own.batch_size}; "
      "write a larger one"
    )
  if own.n_step > env.max_episode_steps:
    raise ConfigError(
      f"{name}.n_step={own.n_step} is more than the {env.max_episode_steps} steps of an episode; write fewer"
    )
  if length < least:
    raise ConfigError(
      f"{name}.buffer_size={own.buffer_size} is too small for num_envs={config.num_envs}, "
      f"{name}.horizon={own.horizon} and {name}.n_step={own.n_step}; "
      f"the smallest is {config.num_envs * least}"
    )
  if own.greedy_envs > config.num_envs:
    raise ConfigError(
      f"{name}.greedy_envs={own.greedy_envs} is more than num_envs={config.num_envs}; write fewer"
    )
  dtype = weight_dtype(resolve(own.precision, env.device))  # bf16 has the weights of float32
  needed, memory = replay_bytes(env, length, dtype, stored_obs(config, env)), total_memory(env.device)
  if needed > SHARE * memory:
    most = int(own.buffer_size * SHARE * memory / needed)
    raise ConfigError(
      f"{name}.buffer_size={own.buffer_size}: a replay buffer of {needed / 1e9:,.0f} GB does not fit, as "
      f"{env.device} has {memory / 1e9:.0f} GB; the largest is {most}"
    )


def stored_obs(config: TrainConfig, env: VecEnv) -> StoredObs:
  """Return how the settings keep observations; raise ConfigError if no group has a block that they name."""
  own = off_policy(config)
  known = sorted({block for blocks in env.obs_names.values() for block in blocks})
  for block in own.storage_blocks:
    if block not in known:
      raise ConfigError(
        f"{config.algorithm}.storage_blocks: the task observes no '{block}'{suggestion(block, known)}"
      )
  return StoredObs(env, own.storage, own.storage_blocks)


def greedy_envs(env: VecEnv, config: TrainConfig, world: World) -> Tensor:
  """Return which environments act without noise [local_envs] bool, the same ones for any number of ranks."""
  index = world.rank * env.num_envs + torch.arange(env.num_envs, device=env.device)
  count = off_policy(config).greedy_envs
  return index * count % config.num_envs < count  # at equal distances


def batches_per_draw(settings: OffPolicyConfig) -> int:
  """Return the number of batches drawn at once, which divides the gradient steps of an iteration.

  It depends on the batch over all ranks alone, so that any number of ranks draws the same.
  """
  steps = settings.horizon * settings.updates_per_step
  return max(n for n in range(1, max(1, MOST // settings.batch_size) + 1) if steps % n == 0)


def make_sampler(env: VecEnv, replay: Replay, count: int, config: TrainConfig, world: World) -> ReplaySampler:
  """Return the sampler of a rank's `count` transitions that the settings ask for."""
  settings = off_policy(config)
  local_blocks = blocks(config.num_envs, settings.batch_size) // world.size
  random = Random(config.seed, local_blocks, world.rank * local_blocks, env.device)
  if not settings.prioritized:
    # A batch of images is long to draw, and takes much memory.
    batches = 1 if images_of(env) else batches_per_draw(settings)
    return ReplaySampler(replay, count, settings.n_step, random, batches)
  draws = PRIORITY_STEPS * settings.updates_per_step / config.num_envs  # one for each gradient step
  exponents = (settings.priority_alpha, settings.priority_beta, draws)
  return PrioritizedSampler(replay, count, settings.n_step, random, exponents)
