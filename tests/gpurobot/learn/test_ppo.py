import itertools
import math
from typing import Any, ClassVar

import pytest
import torch

from gpurobot.device.distributed import World
from gpurobot.learn.collector import RolloutCollector
from gpurobot.learn.overlap import OverlappedRollouts
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run.health import Health, symptoms_of
from gpurobot.settings.config import ConfigError, assign, defaults
from tests.gpurobot import toy


def learner(world: World | None = None, module=toy, source=RolloutCollector, mirror=False, **values) -> PPO:
  values = {"ppo.precision": "float64", "num_envs": 32, "overlap": source is OverlappedRollouts} | values
  config = assign(defaults(module), values)
  env = module.Task(config.env, config.num_envs, random=Random(config.seed, config.num_envs))
  if mirror:  # in the line x = -y
    env.mirror = dict.fromkeys(("policy", "action"), (torch.tensor([1, 0]), -torch.ones(2)))
  return PPO(env, config, world or World(), source)


def iterate(learner: Any, count: int) -> Any:
  """Let a learner of any algorithm collect and learn."""
  for _ in range(count):
    learner.collect()
    learner.update()
  return learner


@pytest.mark.parametrize("words", [
  {}, {"ppo.recurrent": "gru"}, {"ppo.recurrent": "lstm", "ppo.sequence": 4, "ppo.critic": "twohot"},
  {"ppo.squash": True, "ppo.state_std": True, "ppo.layer_norm": True, "ppo.shared": False},
])  # fmt: skip
def test_the_rollout_is_the_present_policys(words):
  """At the start of an update its ratios are 1 and its values those of the rollout, memories included."""
  one = learner(**words)
  iterate(one, 2)
  one.collect()
  one.executor.run(one._evaluate)
  one.executor.run(one._standardize)
  one.executor.run(one.sampler.draw)
  for rows in one.sampler.minibatches:
    batch, state = one.rollout.minibatch(rows)
    with torch.no_grad():
      policy, value, _ = one.network(batch["obs"], state, batch["restart"])
      torch.testing.assert_close(policy.parameters, batch["policy"], rtol=1e-12, atol=1e-12)
      torch.testing.assert_close(value.value, batch["value"], rtol=1e-12, atol=1e-12)
      torch.testing.assert_close(policy.log_prob(batch["action"]), batch["log_prob"], rtol=1e-10, atol=1e-10)
      assert float(one.network.head.old(batch["policy"]).divergence(policy).abs().max()) < 1e-12


def test_a_failing_simulation_leaves_no_trace():
  one = iterate(learner(**{"env.finite_below": 0.9}), 3)
  assert all(torch.isfinite(parameter).all() for parameter in one.network.parameters())
  report = one.report()
  valid = float(one.value_moments.count)
  assert 0 < valid < 3 * 32 * 8
  assert math.isfinite(float(report["return"]))
  one.collect()
  one.executor.run(one._evaluate)
  one.executor.run(one._standardize)
  advantage = one.rollout.samples["advantage"][one.rollout.samples["valid"]]
  assert 0 < len(advantage) < 32 * 8
  assert float(advantage.mean()) == pytest.approx(0, abs=1e-12)
  assert float(advantage.std(correction=0)) == pytest.approx(1, rel=1e-6)


def test_a_time_limit_is_worth_the_value_of_its_final_observation():
  """Seen with the memory of the episode that ended, not with that of the next."""
  given = {"ppo.recurrent": "lstm", "env.episode_steps": 3, "ppo.gae_lambda": 0.0}
  one = learner(**given, graphs="off")  # Python is to see each step
  finals, steps = [], []
  step = one.env.step
  one.env.step = lambda action: steps.append(step(action)) or steps[-1]
  network = one.network.forward

  def remember(obs, state, restart):
    output = network(obs, state, restart)
    finals.append(output.state.clone())
    return output

  one.network.forward = remember
  iterate(one, 1)
  finals.clear()
  steps.clear()
  one.collect()
  one.executor.run(one._evaluate)
  samples, moments = one.rollout.samples, one.value_moments
  value = moments.denormalize(samples["value"])
  for t in range(8):
    obs = {group: x.unsqueeze(0) for group, x in one.observations(steps[t]["final_obs"]).items()}
    final = moments.denormalize(one.network.evaluate(obs, finals[t], torch.zeros(1, 32, dtype=torch.bool))[0])
    expected = one.rewards(samples["reward"][t]) + one.ppo.gamma * final - value[t]
    here = samples["truncated"][t]
    torch.testing.assert_close(samples["advantage"][t][here], expected[here].detach(), rtol=1e-11, atol=1e-11)
  assert int(samples["truncated"].sum()) > 32


def test_values_stay_where_they_are_when_the_moments_of_the_returns_move_on():
  one = iterate(learner(), 3)
  one.collect()
  samples = one.rollout.samples
  before = one.value_moments.denormalize(samples["value"])
  one.executor.run(one._evaluate)
  one.executor.run(one._merge)
  obs = {group: x.flatten(0, 1).unsqueeze(0) for group, x in samples["obs"].items()}
  with torch.no_grad():
    value = one.network.evaluate(
      obs, one.collector.state[:0], torch.zeros(1, before.numel(), dtype=torch.bool)
    )
  after = one.value_moments.denormalize(value).view_as(before)
  torch.testing.assert_close(after, before, rtol=1e-10, atol=1e-10)
  assert float(one.value_moments.mean) != 0


class Aging(toy.Task):
  """The toy with a critic that sees the episode's age."""

  obs_dims: ClassVar = {"policy": 2, "critic": 3}

  def _observe(self):
    return super()._observe() | {"critic": torch.cat([self.position, self.age[:, None].float()], 1)}


@pytest.mark.parametrize(("bootstrap", "runaway"), [("final", True), ("next", False)])
def test_values_run_away_where_the_critic_sees_the_age_and_the_log_says_so(bootstrap, runaway):
  """The value at the time limit is its own bootstrap, seen a step earlier, and no sample says what it is.

  With the value of the next episode's start the values follow each other as the samples do.
  """
  config = assign(defaults(toy), {"seed": 1, "ppo.bootstrap": bootstrap})
  one = PPO(Aging(config.env, 64, random=Random(1, 64)), config, World())
  health = Health(symptoms_of(config))
  warnings = []
  for _ in range(12):
    iterate(one, 10)
    warnings += health.check({"iteration": one.iteration} | {k: float(v) for k, v in one.report().items()})
  assert [text.startswith("the values ran away") for text in warnings] == [True] * runaway


@pytest.mark.slow
def test_compiled_passes_give_the_same_numbers_but_for_rounding():
  one, other = (iterate(learner(compile=switch), 1) for switch in ("off", "on"))
  torch.testing.assert_close(one.optimizer.weights, other.optimizer.weights, rtol=0, atol=1e-9)


def test_mirrored_samples_are_a_minibatch_of_their_own():
  """The objective is the mean of that of the samples and that of a minibatch of mirrored ones."""
  one = learner(**{"ppo.mirror_augment": True}, mirror=True)
  iterate(one, 1)
  one.collect()
  one.executor.run(one._evaluate)
  one.executor.run(one._standardize)
  one.executor.run(one.sampler.draw)
  batch, state = one.rollout.minibatch(one.sampler.minibatches[0])
  both, _, _ = one._objective(batch, state)
  one.ppo.mirror_augment = False
  alone, _, _ = one._objective(batch, state)
  raw = one.observations.moments["policy"].denormalize(batch["obs", "policy"])
  image = batch.clone()
  image["obs", "policy"] = one.observations.moments["policy"].normalize(-raw[..., [1, 0]])
  image["action"] = -batch["action"][..., [1, 0]]
  mirrored, _, _ = one._objective(image, state)  # the critic sees what it saw
  torch.testing.assert_close(both, (alone + mirrored) / 2, rtol=1e-9, atol=1e-9)
  assert abs(float(alone - mirrored)) > 1e-6


def test_what_does_not_fit_is_said_in_one_line():
  alone = "ppo.schedule=adaptive needs a second epoch or minibatch to measure the KL divergence; "
  for words, message in (
    (
      {"ppo.epochs": 1, "ppo.minibatches": 1},
      f"{alone}with ppo.epochs=1 ppo.minibatches=1 write ppo.schedule=constant",
    ),
    (
      {"ppo.mirror_augment": True},
      "ppo.mirror_augment=true: the task has no mirror; write ppo.mirror_augment=false",
    ),
    (
      {"ppo.recurrent": "gru", "ppo.sequence": 3},
      "ppo.sequence=3 does not divide ppo.horizon=8; the nearest is 2",
    ),
  ):
    with pytest.raises(ConfigError) as error:
      learner(**words)
    assert str(error.value) == message


@pytest.mark.parametrize("spoiled", [range(1000), [1]])
def test_skipped_steps_never_raise_the_learning_rate(spoiled):
  """The divergence is small because steps of the epoch, all of them or one, were skipped."""
  one = iterate(learner(**{"ppo.kl_target": 10.0, "ppo.epochs": 1, "ppo.minibatches": 4}), 1)
  before, reduce, calls = float(one.optimizer.rate), one.optimizer.reduce, itertools.count()

  def spoil():
    reduce()
    if next(calls) in spoiled:
      one.optimizer.gradient[0] = math.nan

  one.optimizer.reduce = spoil
  iterate(one, 1)
  assert int(one.optimizer.skipped) == len([*spoiled][:4])
  assert float(one.optimizer.rate) == before
  one.optimizer.reduce = reduce
  iterate(one, 1)
  assert float(one.optimizer.rate) > before
