"""An iteration is fit for a CUDA graph: it reads nothing, and recorded operations repeat it bit by bit."""

import copy
import functools
import logging
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import pytest
import torch
from torch.utils._pytree import tree_leaves

from gpurobot.device import executor, tape
from gpurobot.device.distributed import World
from gpurobot.learn.algorithm import warm_up
from gpurobot.learn.distill import Distill
from gpurobot.learn.off_policy.base import OffPolicy
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.config import assign, defaults
from gpurobot.training import LEARNERS
from tasks import ant
from tests.compiled import nothing_new, tracing
from tests.gpurobot import pushed_box, styled, taught_pixels, toy, toy_choices, toy_pixels
from tests.gpurobot.tape import DeviceRead, Tape, TapedGraph, no_reads
from tests.gpurobot.taught import make_teacher
from tests.instances import grouped
from tests.tasks import shaken_cartpole

ITERATIONS = 4


class Choosing(toy_choices.Task, styled.Task):
  """The toy with choices and a style."""


SMALL = {"num_envs": 32, "ppo.horizon": 4, "ppo.hidden": [32], "ppo.epochs": 2, "ppo.minibatches": 2}
SMALL |= {"env.episode_steps": 10}
OFF_POLICY = {"horizon": 2, "batch_size": 64, "buffer_size": 512, "learning_starts": 2, "updates_per_step": 2}
OFF_POLICY |= {"hidden": [16], "critic_hidden": [16], "n_step": 2}
SAC, TD3 = (
  {"algorithm": name} | {f"{name}.{key}": x for key, x in OFF_POLICY.items()} for name in ("sac", "td3")
)
SHIFTED = {"ppo.random_shift": 2, "env.finite_below": 1.2}
# Settings that do not exclude each other are recorded together.
CASES = {
  "box of varied mass": (pushed_box, {"env.episode_steps": 3}),
  "cartpole, shaken and mirrored, squashed and twohot": (
    shaken_cartpole,
    {
      "env.kick_seconds_min": 0.02,
      "env.kick_seconds_max": 0.1,
      "ppo.mirror_coef": 0.5,
      "ppo.mirror_augment": True,
      "ppo.squash": True,
      "ppo.state_std": True,
      "ppo.critic": "twohot",
      "ppo.precision": "bf16",
    },
  ),
  "toy, choices, lstm, learned rewards, invalid steps": (
    SimpleNamespace(Config=styled.Config, Task=Choosing, PPO=styled.PPO),
    {
      "ppo.recurrent": "lstm",
      "ppo.sequence": 2,
      "env.finite_below": 1.2,
      "ppo.rnd.weight": 0.5,
      "ppo.precision": "float64",
      "ppo.layer_norm": True,
      "ppo.entropy_coef": 0.1,
      "ppo.entropy_coef_final": 0.0,
      "ppo.entropy_steps": 2000,
      "ppo.schedule": "constant",
    },
  ),
  "toy, sac, invalid steps": (toy, SAC | {"env.finite_below": 1.2, "env.episode_steps": 3}),
  "ant, td3 in bf16": (
    ant,
    TD3 | {"td3.precision": "bf16", "td3.prioritized": True, "td3.storage": "uint8", "td3.critic": "scalar"},
  ),
  "pixels, shifted": (toy_pixels, SHIFTED),
  "pixels, sac, shifted": (toy_pixels, SAC | {"sac.random_shift": 2, "sac.encoder_features": 8}),
  "pixels, distill, gru, shifted": (
    taught_pixels,
    {
      "algorithm": "distill",
      "ppo.recurrent": "gru",
      "distill.mix": 0.5,
      "distill.mix_steps": 2000,
      **SHIFTED,
    },
  ),
}
# The compiler takes ten seconds for each.
COMPILED = {
  **CASES,
  "toy, sac, invalid steps": (toy, CASES["toy, sac, invalid steps"][1] | {"sac.precision": "float64"}),
}
for left_out in ("box of varied mass", "ant, td3 in bf16", "pixels, shifted", "pixels, sac, shifted"):
  del COMPILED[left_out]

every_case = pytest.mark.parametrize("name", grouped(CASES))  # one process trains what is compared
same = partial(torch.testing.assert_close, rtol=0, atol=0, equal_nan=True)


def make_learner(module, settings: dict[str, object], device: str = "cpu") -> PPO | OffPolicy | Distill:
  config = assign(defaults(module), SMALL | settings)
  random = Random(config.seed, config.num_envs, 0, device)
  env = module.Task(config.env, config.num_envs, device, random=random)
  if config.algorithm == "distill":
    teachers = [make_teacher(config.num_envs, seed=seed, device=device) for seed in (0, 1)]
    return Distill(env, config, World(), teachers)
  return LEARNERS[config.algorithm](env, config, World())


def tensors(state: object) -> list[torch.Tensor]:
  return [leaf.clone() for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor)]


def train(learner: PPO | OffPolicy | Distill, iterations: int) -> list[torch.Tensor]:
  """Return all that the iterations report."""
  reported = []
  for _ in range(iterations):
    learner.collect()
    learner.update()
    reported += tensors(learner.report())
  return reported


class Called(NamedTuple):
  """What iterations of Python give: reports, what they leave, and the same of two more."""

  start: list[torch.Tensor]
  reports: list[torch.Tensor]
  left: list[torch.Tensor]
  state: tuple[dict, object]
  later: tuple[list[torch.Tensor], list[torch.Tensor]]


@functools.cache
def called(name: str) -> Called:
  """Train without recordings; after the first iteration none reads the device."""
  module, settings = CASES[name]
  learner = make_learner(module, settings | {"graphs": "off"})  # a tape compares its first replay
  start = tensors(list(learned(learner).parameters()))
  reports = train(learner, 1)
  with no_reads():
    reports += train(learner, ITERATIONS - 1)
  left = tensors(learner.state_dict())
  state = copy.deepcopy((learner.state_dict(), learner.buffer and learner.buffer.memory))
  reported = train(learner, 2)
  return Called(start, reports, left, state, (reported, tensors(learner.state_dict())))


def learned(learner: PPO | OffPolicy | Distill) -> torch.nn.Module:
  return learner.student if isinstance(learner, Distill) else learner.network


@every_case
def test_recorded_operations_train_as_python_does(monkeypatch, name):
  """No number that Python keeps may differ between iterations, and no memory may move.

  What the host decided while they were recorded must hold for another state too, which is loaded at the end.
  """
  graphs: list[TapedGraph] = []
  monkeypatch.setattr(executor, "Graph", lambda *words, **_: graphs.append(TapedGraph(*words)) or graphs[-1])
  taped = make_learner(*CASES[name])
  same(train(taped, ITERATIONS), called(name).reports)
  learnt = ITERATIONS - taped.first_update
  assert min(graph.calls for graph in graphs if graph.calls) >= learnt > 2
  same(tensors(taped.state_dict()), called(name).left)
  assert not any(map(torch.equal, called(name).start, learned(taped).parameters()))
  train(taped, 1)
  state, memory = copy.deepcopy(called(name).state)
  taped.load_state_dict(state)
  if taped.buffer:
    taped.buffer.load_rows(0, memory)
  same((train(taped, 2), tensors(taped.state_dict())), called(name).later)


@every_case
def test_a_cpu_replays_what_python_does(monkeypatch, recwarn, name):
  tapes: list[tape.Tape] = []
  monkeypatch.setattr(executor, "Tape", lambda *words: tapes.append(tape.Tape(*words)) or tapes[-1])
  replaying = make_learner(*CASES[name])
  same(train(replaying, ITERATIONS), called(name).reports)
  same(tensors(replaying.state_dict()), called(name).left)
  assert isinstance(replaying, OffPolicy) or any(own.source for own in tapes)
  assert not recwarn


@pytest.mark.parametrize("name", COMPILED)
def test_torchs_compiler_follows_an_iteration(monkeypatch, caplog, name):
  """For good while it warms up, which leaves no trace and is told of first."""
  module, settings = COMPILED[name]
  caplog.set_level(logging.INFO, "gpurobot")
  expected = train(make_learner(module, settings), 2)
  caplog.clear()  # a kernel may have been built
  with tracing(monkeypatch):
    learner = make_learner(module, settings | {"compile": "on"})
    warm_up(learner)
    assert caplog.messages == ["compiling an iteration: about a minute"]
    with nothing_new():
      reports = train(learner, 2)
  same(reports, expected)


@pytest.mark.parametrize(
  "settings",
  [
    {"ppo.recurrent": "lstm", "ppo.sequence": 2, "ppo.layer_norm": True},
    {"ppo.squash": True, "ppo.state_std": True, "ppo.critic": "twohot"},
    SAC,
    TD3,
  ],
)
def test_an_iteration_stays_on_its_device(monkeypatch, settings):
  """On the device "meta" tensors have no numbers to read, and none goes together with one of the CPU.

  What torch has not for that device is left out: Adam, and bf16, which a processor may choose.
  """
  monkeypatch.setattr(torch, "_fused_adam_", mock.MagicMock())
  precision = {f"{name}.precision": "float32" for name in ("ppo", "sac", "td3")}
  learner = make_learner(toy, precision | settings, "meta")
  assert {tensor.device.type for tensor in train(learner, 2)} == {"meta"}


@pytest.mark.parametrize(
  "read",
  [
    lambda x: bool(x.any()),
    lambda x: x.tolist(),
    lambda x: x.cpu(),
    lambda x: x.numpy(),
    lambda x: x[x > 0],
    lambda x: x.nonzero(),
    lambda x: x.new_tensor([1.0, 2.0]),
    lambda x: x[[0, 1]],
    lambda x: torch.equal(x, x),
  ],
)
def test_a_read_is_seen(read: Callable[[torch.Tensor], object]):
  x = torch.ones(3)
  with no_reads():
    x[torch.zeros(2, dtype=torch.int64)] *= 2.0
    with pytest.raises(DeviceRead):
      read(x)


def test_a_tape_shows_what_python_keeps():
  """A number that Python counts, and memory that is replaced, stay as they were when they were recorded."""
  count, x, y = 1.0, torch.zeros(2), torch.zeros(2)

  def iteration() -> None:
    nonlocal count, y
    x.add_(count)
    count += 1
    y = y + x

  with (tape := Tape()):
    iteration()
  tape.replay()
  assert (x[0], y[0]) == (2, 2)  # not 3 and 4
