import pytest
import torch

from gpurobot.algorithm_config import PPOConfig, SACConfig
from gpurobot.config import assign, defaults
from gpurobot.learn.random import Random
from gpurobot.learn.replayed import LARGEST, replayed
from tests.gpurobot import toy, toy_pixels


def make(module):
  config = assign(defaults(module), {"num_envs": 2})
  return module.Task(config.env, 2, torch.device("cpu"), random=Random(0, 2))


@pytest.mark.parametrize(
  ("settings", "count", "expected"),
  [
    (PPOConfig(), LARGEST, True),
    (PPOConfig(), LARGEST + 1, False),
    (SACConfig(), 256, True),
    (PPOConfig(loss="own.py:loss"), 256, False),
    (SACConfig(network="own.py:Network"), 256, False),
  ],
)
def test_small_steps_without_code_of_the_users_are_replayed(settings, count, expected):
  assert replayed(settings, make(toy), count) is expected


def test_steps_that_see_images_are_not_replayed():
  assert not replayed(PPOConfig(), make(toy_pixels), 256)
