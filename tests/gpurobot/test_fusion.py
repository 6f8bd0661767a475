"""A training whose operations are fused has the numbers of one that calls them."""

import importlib

import pytest
import torch
from torch.utils._pytree import tree_leaves

from benchmarks.training.fused import Compiled
from gpurobot.device import tape
from gpurobot.device.distributed import World
from gpurobot.device.tape import Tape
from gpurobot.fusion.schedule import fuse
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.config import assign, defaults

SETTINGS = {"num_envs": 64, "ppo.horizon": 8, "ppo.hidden": [32], "ppo.epochs": 2, "ppo.minibatches": 2}
ITERATIONS = 4
FUSE = 9  # the call that is fused
CASES = {
  "shaken cartpole": ("tests.tasks.shaken_cartpole", {"env.episode_steps": 10}),
  "rough ground, squashed in bf16": (
    "tasks.quadruped_rough",
    {"ppo.squash": True, "ppo.precision": "bf16", "env.episode_steps": 10},
  ),
  "style": ("tasks.humanoid_amp", {"env.episode_steps": 10}),
  "two phases of physics": ("tasks.peg_insert", {"env.episode_steps": 10}),
}


def train(module, settings: dict[str, object]) -> tuple[PPO, list[torch.Tensor]]:
  """Return a learner after some iterations, and all that it reported and knows."""
  config = assign(defaults(module), SETTINGS | settings)
  env = module.Task(config.env, config.num_envs, random=Random(config.seed, config.num_envs))
  learner, found = PPO(env, config, World()), []
  if isinstance(learner.collector.taped, Tape):
    learner.collector.taped.fusion = Compiled(config.num_envs)
  for _ in range(ITERATIONS):
    learner.collect()
    learner.update()
    found += tree_leaves(learner.report())
  found += tree_leaves((learner.state_dict(), learner.rollout.samples.to_dict()))
  return learner, [leaf.clone() for leaf in found if isinstance(leaf, torch.Tensor)]


@pytest.mark.parametrize(("name", "settings"), CASES.values(), ids=CASES)
def test_fused_operations_train_as_torchs_do(monkeypatch, recwarn, name, settings):
  module = importlib.import_module(name)
  monkeypatch.setattr(tape, "FUSE", FUSE)
  called, expected = train(module, settings | {"graphs": "off"})
  fused, found = train(module, settings)
  assert fused.collector.taped.fused
  assert not hasattr(called.collector.taped, "fused")
  torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
  assert not recwarn


@pytest.mark.parametrize(("num_envs", "fuses"), [(64, True), (40, False), (65536, True)])
def test_whole_lane_groups_on_one_thread_are_fused(num_envs, fuses):
  tape = Tape(lambda: None)
  fuse(tape, num_envs)
  assert (tape.fusion is not None) == fuses
  fuse(tape.function, num_envs)
