from functools import partial

import pytest
import torch

from gpurobot.device.transfer import to_cpu
from gpurobot.learn.overlap import OverlappedRollouts
from tests.gpurobot import styled, toy
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.learn.test_ppo import learner as any_learner

BOTH = {"ppo.rnd.weight": 0.5, "ppo.rnd.group": "critic", "env.finite_below": 1.2}
learner = partial(any_learner, module=styled)


def test_the_sum_by_hand():
  one = learner(**BOTH | {"ppo.amp.task_weight": 0.25, "ppo.amp.style_weight": 3.0})
  iterate(one, 2)
  one.collect()
  task, valid = one.rollout.samples["reward"].clone(), one.rollout.samples["valid"]
  with torch.no_grad():
    novelty, style = (part.reward() for part in one.reward_sum.rewards)
  one.reward_sum.add(one.steps)
  found = one.rollout.samples["reward"]
  torch.testing.assert_close(found[valid], (0.25 * task + 0.5 * novelty + 3 * style)[valid])
  assert not found[~valid].any()


def test_the_log_keeps_the_raw_return_and_tells_the_shares():
  with_style = iterate(learner(**BOTH), 3).report()
  plain = iterate(learner(**BOTH | {"ppo.amp.style_weight": 0.0, "ppo.rnd.weight": 0.0}), 3).report()
  assert float(with_style["reward/min"]) < -0.5
  assert float(with_style["reward/distance"]) == pytest.approx(float(plain["reward/distance"]), rel=0.2)
  assert 0 < float(with_style["amp/share"]) + float(with_style["rnd/share"]) < 1
  assert not [name for name in plain if name.startswith(("amp", "rnd"))]


def test_without_weights_the_numbers_are_those_of_a_task_without_style():
  off, plain = iterate(learner(**{"ppo.amp.style_weight": 0.0}), 3), iterate(learner(module=toy), 3)
  assert torch.equal(off.optimizer.weights, plain.optimizer.weights)
  assert "style" not in off.rollout.samples.keys()  # noqa: SIM118
  assert off.observations.moments.keys() == {"policy", "critic"}  # no network sees the style


def test_a_restored_learner_goes_on_with_the_same_numbers():
  one = iterate(learner(source=OverlappedRollouts, **BOTH), 2)
  state = to_cpu(one.state_dict())
  other = iterate(learner(source=OverlappedRollouts, **BOTH), 3)
  other.load_state_dict(state)
  iterate(one, 2)
  iterate(other, 2)
  assert torch.equal(one.optimizer.weights, other.optimizer.weights)
  for mine, theirs in zip(one.reward_sum.rewards, other.reward_sum.rewards, strict=True):
    assert torch.equal(mine.optimizer.weights, theirs.optimizer.weights)
    assert all(map(torch.equal, mine.memory().values(), theirs.memory().values()))
    assert torch.equal(mine.moments.mean, theirs.moments.mean)


def test_a_checkpoint_without_learned_rewards_is_continued():
  state = to_cpu(iterate(learner(**{"ppo.amp.style_weight": 0.0}), 2).state_dict())
  for older in (state, {name: part for name, part in state.items() if name != "learned_rewards"}):
    one = learner()
    one.load_state_dict(older)
    iterate(one, 1)
    assert one.iteration == 3
