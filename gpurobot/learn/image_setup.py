"""Checks of the settings of images, the memory that images take, and the words for both."""

import torch

from gpurobot.device.usage import total_memory
from gpurobot.learn.encoder import SMALLEST
from gpurobot.learn.env import VecEnv, images_of
from gpurobot.settings.algorithms import Encoder, OffPolicyConfig, PPOConfig
from gpurobot.settings.config import ConfigError

KEYS = ("encoder", "encoder_features", "encoder_shared", "random_shift")  # settings of images
SHARE = 0.8  # of the memory of a device that the images of a rollout may take


def check_images(name: str, settings: PPOConfig | OffPolicyConfig, env: VecEnv) -> None:
  """Raise ConfigError if the settings of an algorithm, by its name, do not fit the images of the task."""
  images, default = images_of(env), type(settings)()
  changed = [key for key in KEYS if getattr(settings, key, None) != getattr(default, key, None)]
  if changed and not images:
    key = changed[0]
    raise ConfigError(f"{name}.{key}={getattr(settings, key)}: the task observes no images; leave it out")
  kind = settings.encoder or Encoder.nature
  for image, (shape, *_) in images.items():
    side = min(shape[:2])
    if side < SMALLEST[kind]:
      others = [other for other in Encoder if SMALLEST[other] <= side]
      way = f"write {name}.encoder={others[0]}, or make it larger" if others else "make it larger"
      raise ConfigError(
        f"{name}.encoder={kind}: the image '{image}' of {shape[0]} x {shape[1]} pixels is too small, "
        f"it needs {SMALLEST[kind]}; {way}"
      )
    if settings.random_shift >= side:
      raise ConfigError(
        f"{name}.random_shift={settings.random_shift} moves all of the image '{image}' of {shape[0]} x "
        f"{shape[1]} pixels out of sight; write fewer"
      )


def rollout_bytes(env: VecEnv, horizon: int) -> int:
  """Return the memory [bytes] of the images in the rollout of one rank."""
  truncations = -(-horizon // env.least_between_truncations)
  rows = horizon + truncations + 2  # the steps, final observations, the last one, the present one
  return rows * env.num_envs * sum(image.bytes for image in images_of(env).values())


def check_rollout(ppo: PPOConfig, env: VecEnv, device: torch.device) -> None:
  """Raise ConfigError if the images of a rollout do not fit in the memory of the device that learns."""
  needed, memory = rollout_bytes(env, ppo.horizon), total_memory(device)
  if needed > SHARE * memory:
    raise ConfigError(
      f"ppo.horizon={ppo.horizon}: the images of a rollout of {env.num_envs} environments take "
      f"{needed / 1e9:,.0f} GB, and {device} has {memory / 1e9:.0f} GB; write fewer steps or environments, "
      "or smaller images"
    )


def image_words(settings: PPOConfig | OffPolicyConfig, env: VecEnv) -> str:
  """Return the images of a task and how they are encoded, for the line about the network; "" without any."""
  images = images_of(env)
  if not images:
    return ""
  shapes = ", ".join(f"{name} {image}" for name, image in images.items())
  shift = f", shifted by up to {settings.random_shift} pixels" if settings.random_shift else ""
  kind = settings.encoder or Encoder.nature
  return f"images {shapes}{shift} to {settings.encoder_features} features by {kind}; "


def rollout_words(ppo: PPOConfig, env: VecEnv) -> str:
  """Return the images of a task, how they are encoded, and the memory of a rollout; "" without any."""
  images = image_words(ppo, env)
  return images and f"{images}rollout of {rollout_bytes(env, ppo.horizon) / 1e9:.2g} GB per rank; "
