import contextlib
from functools import partial

import pytest
import torch

from gpurobot.device.background import Background
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.algorithm import warm_up
from gpurobot.learn.collector import RolloutCollector
from gpurobot.learn.overlap import OverlappedRollouts, shared_threads
from gpurobot.learn.ppo import PPO
from gpurobot.settings.checks import check_overlap
from gpurobot.settings.config import ConfigError, assign, defaults
from tests.gpurobot import toy
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.learn.test_ppo import learner as any_learner

ENVS = 32
learner = partial(any_learner, source=OverlappedRollouts)


def numbers(one: PPO) -> list[torch.Tensor]:
  moments = [part for group in one.observations.state_dict().values() for part in group.values()]
  return [one.optimizer.weights, one.optimizer.rate, *moments, *one.value_moments.state_dict().values()]


def same(one: PPO, other: PPO) -> bool:
  return all(torch.equal(x, y) for x, y in zip(numbers(one), numbers(other), strict=True))


@pytest.mark.parametrize("words", [{}, {"ppo.recurrent": "gru", "ppo.critic": "twohot"}])
def test_the_first_iteration_is_that_of_ppo(words):
  """The first rollout is the present policy's: its ratios are 1."""
  one, plain = iterate(learner(**words), 1), iterate(learner(source=RolloutCollector, **words), 1)
  torch.testing.assert_close(one.rollout.ratio, torch.ones_like(one.rollout.ratio), rtol=0, atol=1e-12)
  torch.testing.assert_close(one.optimizer.weights, plain.optimizer.weights, rtol=0, atol=1e-12)
  iterate(one, 1)
  assert float((one.rollout.ratio - 1).abs().max()) > 1e-4


def test_numbers_do_not_depend_on_what_ends_first(monkeypatch):
  """One after the other, they are those of both at once."""
  at_once = iterate(learner(**{"env.finite_below": 0.9}), 5)
  running = Background.running

  @contextlib.contextmanager
  def in_turn(background, function, _concurrent=True):
    with running(background, function, False):
      yield

  monkeypatch.setattr(Background, "running", in_turn)
  assert same(at_once, iterate(learner(**{"env.finite_below": 0.9}), 5))


def test_a_rollout_is_of_the_policy_before_the_last_update():
  """Its samples have the log probabilities of that policy, and the ratios compare it with the present one."""
  one = iterate(learner(), 2)
  before = to_cpu(one.agent.state_dict())
  iterate(one, 1)  # meanwhile, the next rollout was collected by the policy before it
  samples = one.source.acting.rollout.samples
  acted = learner()
  acted.agent.load_state_dict(before)
  with torch.no_grad():
    state, restart = samples["reward"].new_zeros(ENVS, 0), samples["restart"]
    policy, _, _ = acted.network(samples["obs"], state, restart)
    torch.testing.assert_close(
      policy.log_prob(samples["action"]), samples["log_prob"], rtol=1e-10, atol=1e-10
    )
    present, _, _ = one.network(samples["obs"], state, restart)
    ratio = (present.log_prob(samples["action"]) - samples["log_prob"]).exp()
  one.collect()
  one.executor.run_parts(one.source._reevaluate)
  torch.testing.assert_close(one.rollout.ratio, ratio, rtol=1e-10, atol=1e-10)
  torch.testing.assert_close(one.rollout.samples["policy"], present.parameters, rtol=1e-10, atol=1e-10)


def test_moments_take_every_valid_sample_in_once():
  """Those of the rollout that waits are not among them yet."""
  one = iterate(learner(), 3)
  assert float(one.observations.moments["policy"].count) == 3 * ENVS * 8
  assert float(one.source.acting.agent.observations.moments["policy"].pending[0]) == ENVS * 8


def test_a_restored_learner_goes_on_with_the_same_numbers():
  words = {"ppo.recurrent": "lstm"}
  one = iterate(learner(**words), 3)
  state = to_cpu(one.state_dict())
  other = iterate(learner(**words), 2)
  other.load_state_dict(state)
  assert other.iteration == 3
  iterate(one, 2)
  iterate(other, 2)
  assert same(one, other)
  assert float(other.report()["behaviour/age"]) == 1


def test_warming_up_leaves_no_trace(monkeypatch):
  one, cold = learner(), learner()
  monkeypatch.setattr(type(one.executor), "prepares", True)
  warm_up(one)
  monkeypatch.undo()
  assert same(iterate(one, 3), iterate(cold, 3))


def test_ppo_goes_on_from_a_checkpoint_with_overlap_and_the_other_way_round():
  state = to_cpu(iterate(learner(), 2).state_dict())
  plain = learner(source=RolloutCollector)
  plain.load_state_dict(state)
  state = to_cpu(iterate(plain, 1).state_dict())
  one = learner()
  one.load_state_dict(state)
  one.collect()
  assert float(one.report()["behaviour/age"]) == 0
  assert iterate(one, 1).iteration == 4


def test_times_are_told_of_both_threads_which_have_a_timer_each():
  """Two threads that share one count each other's time, and may find it half done."""
  one = iterate(learner(), 2)
  assert {"wait", "policy", "update/forward", "storage"} <= one.clock.seconds().keys()
  assert not [part for part in one.collector.clock.seconds() if part.startswith("update/")]


def test_threads_are_shared_between_the_two(monkeypatch):
  config, cpu, cuda = assign(defaults(toy), {"overlap": True}), torch.device("cpu"), torch.device("cuda")
  monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
  assert shared_threads(config, cpu, cpu) == (4, 4)
  assert shared_threads(assign(config, {"sim_threads": 6}), cpu, cpu) == (6, 2)
  assert shared_threads(config, cpu, cuda) == (8, 8)
  assert shared_threads(assign(config, {"overlap": False}), cpu, cpu) == (8, 8)
  with pytest.raises(ConfigError, match=r"^sim_threads=8 leaves none of 8 threads to learn; write fewer$"):
    shared_threads(assign(config, {"sim_threads": 8}), cpu, cpu)
  monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
  assert shared_threads(config, cpu, cpu) == (1, 1)


@pytest.mark.parametrize(("words", "message"), [
  ({"overlap": True, "algorithm": "sac"},
   "overlap=true is for algorithm=ppo; leave it out with algorithm=sac"),
  ({"sim_threads": 2}, "sim_threads=2 has no effect without overlap=true; write both, or no sim_threads"),
])  # fmt: skip
def test_what_does_not_go_together_is_said_in_one_line(words, message):
  with pytest.raises(ConfigError) as error:
    check_overlap(assign(defaults(toy), words))
  assert str(error.value) == message
