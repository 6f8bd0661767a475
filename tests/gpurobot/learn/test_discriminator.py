import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gpurobot.learn import discriminator
from gpurobot.learn.discriminator import Discriminator, StyleReward, reference_of, style_reward
from gpurobot.learn.ppo import PPO
from gpurobot.settings.algorithms import AMPConfig
from gpurobot.settings.config import ConfigError
from tests.gpurobot import styled, toy
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.learn.test_ppo import learner as any_learner

ENVS = 32
learner = partial(any_learner, module=styled)


def style(one: PPO) -> StyleReward:
  (found,) = one.reward_sum.rewards
  assert isinstance(found, StyleReward)
  return found


def judge(network: Discriminator, x: np.ndarray) -> np.ndarray:
  """The network, written again in NumPy."""
  layers = [layer for layer in network.layers if isinstance(layer, torch.nn.Linear)]
  for layer in layers:
    x = x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    x = x if layer is layers[-1] else np.maximum(x, 0)
  return x[:, 0]


@pytest.mark.parametrize(("judgement", "reward"), [(1, 1), (0, 0.75), (-1, 0), (3, 0), (-7, 0), (2, 0.75)])
def test_the_style_reward_is_that_of_the_paper(judgement, reward):
  assert style_reward(torch.tensor([float(judgement)])).tolist() == [reward]


@pytest.mark.parametrize("hidden", [[], [5], [7, 6, 3]])
def test_the_gradient_written_out_is_that_of_autograd(hidden):
  """So is the gradient of its square by the weights."""
  torch.manual_seed(3)
  network = Discriminator(4, AMPConfig(hidden=hidden)).double()
  x = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
  judgement, gradient = network.slope(x)
  (expected,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
  torch.testing.assert_close(judgement, network(x))
  torch.testing.assert_close(gradient, expected)
  weights = [layer.weight for layer in network.layers if isinstance(layer, torch.nn.Linear)]
  found, wanted = (torch.autograd.grad(g.square().sum(), weights) for g in (gradient, expected))
  torch.testing.assert_close(found, wanted)


def test_loss_and_sums_by_hand(monkeypatch):
  monkeypatch.setattr(discriminator, "WEIGHT_DECAY", 0.2)
  one = style(learner(**{"ppo.amp.gradient_penalty": 3.0, "ppo.amp.hidden": [6]}))
  torch.manual_seed(1)
  policy, reference = torch.randn(2, 5, 4, dtype=torch.float64)
  weight = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
  loss, sums = one.loss(policy, reference, weight)
  keep = [0, 1, 3, 4]
  fake, real = (judge(one.network, part.numpy())[keep] for part in (policy, reference))
  step = 1e-6
  slopes = [
    (
      judge(one.network, reference.numpy() + step * axis)
      - judge(one.network, reference.numpy() - step * axis)
    )
    for axis in np.eye(4)
  ]
  penalty = ((np.stack(slopes) / (2 * step)) ** 2).sum(0)[keep]
  squares = sum(
    float(p.detach().square().sum()) for name, p in one.network.named_parameters() if "weight" in name
  )
  plain = ((real - 1) ** 2 + (fake + 1) ** 2).sum()
  assert float(loss) == pytest.approx(plain + 1.5 * penalty.sum() + 0.1 * squares * 4, rel=1e-6)
  expected = [4, plain, penalty.sum(), (fake < 0).sum(), (real > 0).sum()]
  assert sums.tolist() == pytest.approx(expected, rel=1e-6)


def test_pairs_are_successive_states_of_one_episode():
  """A pair begins where the last step of the episode ended; none leads to the start of another."""
  one = learner(**{"env.episode_steps": 3, "ppo.horizon": 8})
  one.collect()
  samples = one.rollout.samples
  before, after = samples["style"].unbind(2)
  ended = samples["terminated"] | samples["truncated"]
  assert ended[:-1].any()
  going_on = ~ended[:-1]
  assert torch.equal(before[1:][going_on], after[:-1][going_on])
  assert not torch.equal(before[1:][~going_on], after[:-1][~going_on])
  assert (
    float((after - before).norm(dim=-1).max()) <= 0.5 * math.sqrt(2) + 1e-6
  )  # the longest step of the toy


def test_pairs_that_are_not_valid_have_no_weight():
  one = learner(**{"env.finite_below": 0.9})
  iterate(one, 3)
  samples, found = one.rollout.samples, style(one)
  assert not samples["valid"].all()
  assert not samples["style"][~samples["valid"]].any()
  assert not found.replay[~found.replay_valid].any()
  assert not found.replay_valid.all()
  policy, _, weight = found.draw()
  blank = found.prepare(torch.zeros(2, 2)).expand_as(policy)
  assert torch.equal(weight == 0, (policy == blank).all(1))
  assert all(p.isfinite().all() for p in found.network.parameters())


def test_the_replay_is_a_ring_of_the_last_iterations(monkeypatch):
  """5 pairs of each environment: one of each of the last 5 iterations."""
  monkeypatch.setattr(discriminator, "REPLAY", 5)
  monkeypatch.setattr(discriminator, "ITERATIONS", 5)
  one = learner()
  seen = []
  for _ in range(7):
    iterate(one, 1)
    seen.append(one.rollout.samples["style"].clone())
  found = style(one)
  assert int(found.written) == 7
  for place, iteration in zip(range(5), (5, 6, 2, 3, 4), strict=True):
    same = (seen[iteration] == found.replay[place]).flatten(2).all(2)
    assert same.any(0).all()
    steps = same.long().argmax(0)
    assert len(steps.unique()) > 1  # each environment has a step of its own


def test_the_moments_are_of_reference_and_policy_alike():
  one = learner()
  found = style(one)
  reference = found.reference[:, 0].double()
  torch.testing.assert_close(found.moments.mean, reference.mean(0))
  torch.testing.assert_close(found.moments.variance, reference.var(0, correction=0))
  iterate(one, 2)
  assert float(found.moments.count) == 100 + 2 * 4 * 2 * 2 * ENVS  # iterations, updates, halves, both


def test_the_style_pulls_the_policy_to_the_reference():
  """With the style alone; the task's origin is 0.9 m away from it."""
  words = {"ppo.amp.task_weight": 0.0, "ppo.amp.style_weight": 1.0, "ppo.amp.lr": 1e-3}
  one = iterate(learner(**words, **{"env.episode_steps": 40, "seed": 1}), 60)
  position = one.env.position[one.env.age > 10]
  assert float((position - torch.tensor(styled.SPOT)).norm(dim=1).mean()) < 0.4


@pytest.mark.parametrize(("reference", "message"), [
  (None, "the task has no style reference; write ppo.amp.style_weight=0"),
  (torch.zeros(4, 2), r"style_reference has shape \[4, 2\], not \[pairs, 2, width\]"),
  (torch.zeros(4, 3, 2), r"style_reference has shape \[4, 3, 2\], not \[pairs, 2, width\]"),
  (torch.zeros(0, 2, 2), r"style_reference has shape \[0, 2, 2\], not \[pairs, 2, width\]"),
  (torch.full((4, 2, 2), torch.nan), "style_reference has numbers that are not finite"),
])  # fmt: skip
def test_a_reference_that_does_not_serve_is_named(reference, message):
  with pytest.raises(ConfigError, match=rf"^ppo.amp.style_weight=0.5: {message}$"):
    reference_of(SimpleNamespace(style_reference=reference), AMPConfig(style_weight=0.5))


def test_a_task_without_a_style_is_named_before_anything_runs():
  with pytest.raises(ConfigError, match="the task has no style reference"):
    learner(module=toy, **{"ppo.amp.style_weight": 1.0})


def test_a_reference_of_another_width_is_named(monkeypatch):
  monkeypatch.setattr(styled, "SPOT", (1.0,))
  observe = styled.Task._observe
  monkeypatch.setattr(styled.Task, "_observe", lambda task: observe(task) | {"style": torch.zeros(ENVS, 5)})
  with pytest.raises(
    ConfigError, match="style_reference has states of 2 numbers, and the group 'style' has 5"
  ):
    learner()


def test_noise_blurs_what_the_discriminator_learns_from_and_not_what_it_rates():
  plain, blurred = (style(learner(**{"ppo.amp.noise": noise, "ppo.amp.samples": 64})) for noise in (0.0, 0.5))
  drawn = []
  for one in (plain, blurred):
    one.random.advance()
    drawn.append(one.draw())
  errors = [noisy - exact for exact, noisy in zip(*drawn, strict=True)]
  assert not errors[2].any()
  for error in errors[:2]:
    assert float(error.std()) == pytest.approx(0.5, rel=0.05)
    assert abs(float(error.mean())) < 0.02
  assert abs(float((errors[0] * errors[1]).mean())) < 0.02
  torch.testing.assert_close(plain.reward(), blurred.reward(), rtol=0, atol=0)
