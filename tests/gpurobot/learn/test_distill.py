import logging
import math

import pytest
import torch

from gpurobot.device.distributed import World
from gpurobot.device.tape import Tape
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.distill import distill_loss, teacher_share
from gpurobot.learn.distribution import Gaussian, MultiDiscrete
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import DistillConfig, DistillLoss, PPOConfig
from gpurobot.settings.checks import OF_REWARDS
from gpurobot.settings.config import ConfigError, assign, defaults
from tests.gpurobot import taught_toy, toy, toy_choices
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.taught import make_student, make_teacher


def test_the_loss_by_hand():
  """The divergence of two normal distributions is log(s2/s1) + (s1^2 + (m1 - m2)^2) / (2 s2^2) - 1/2."""
  teacher = Gaussian(torch.tensor([[0.5], [1.0]]).double(), torch.tensor([0.0]).double())
  student = Gaussian(torch.tensor([[0.0], [0.0]]).double(), torch.tensor([math.log(2)]).double())
  kl = [math.log(2) + (1 + mean**2) / 8 - 0.5 for mean in (0.5, 1.0)]
  weight = torch.tensor([2.0, 1.0]).double()
  loss, sums = distill_loss(teacher, student, weight, DistillLoss.kl)
  assert float(loss) == pytest.approx(2 * kl[0] + kl[1])
  entropy = 0.5 * math.log(2 * math.pi * math.e) + math.log(2)
  assert sums.tolist() == pytest.approx([3, float(loss), 2 * 0.25 + 1.0, 3 * entropy])
  assert float(distill_loss(teacher, student, weight, DistillLoss.mse)[0]) == pytest.approx(1.5)


def test_the_loss_of_discrete_actions_by_hand():
  teacher = MultiDiscrete(torch.tensor([[0.0, math.log(3)]]).double(), (2,))  # 1/4 and 3/4
  student = MultiDiscrete(torch.zeros(1, 2).double(), (2,))
  loss, sums = distill_loss(teacher, student, torch.ones(1).double(), DistillLoss.kl)
  assert float(loss) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
  assert sums[2] == 1  # the modes differ


def test_replayed_gradient_steps_have_the_bits_of_called_ones():
  learners = [iterate(make_student([make_teacher(32)], graphs=graphs), 4) for graphs in ("auto", "off")]
  assert [isinstance(one.executor._graphs[one._differentiate], Tape) for one in learners] == [True, False]
  found, expected = (to_cpu(one.policy_dict()) for one in learners)
  torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
  "words", [{}, {"ppo.recurrent": "gru"}, {"ppo.recurrent": "lstm", "ppo.sequence": 4}]
)
def test_the_gradient_of_the_minibatches_is_that_of_the_rollout(words):
  """The reference goes through the rollout step by step, from the memory that each sequence began with."""
  one = iterate(make_student([make_teacher(32)], **words, **{"env.finite_below": 0.9}), 2)
  one.collect()
  one.rollout.samples["weight"].copy_(one.rollout.samples["valid"])
  assert 0 < float(one.rollout.samples["weight"].mean()) < 1
  one.sampler.draw()
  found = torch.zeros_like(one.optimizer.gradient)
  for rows in one.sampler.minibatches:
    one.epochs.rows.copy_(rows)
    one._differentiate()
    found += one.optimizer.gradient
  one.optimizer.clear()
  samples, length, total, state = one.rollout.samples, one.rollout.sequence, 0.0, one.rollout.states[0]
  for t in range(len(samples)):
    state = one.rollout.states[t // length] if t % length == 0 else state
    obs = {"policy": samples["obs", "policy"][t : t + 1]}
    policy, own = one.network.act(obs, state, samples["restart"][t : t + 1])
    state = torch.cat([own, state[:, own.shape[1] :]], 1)
    mean, log_std = samples["label"][t].chunk(2, -1)
    spread, student = log_std.exp().square(), policy.log_std.exp().square()
    kl = policy.log_std - log_std + (spread + (mean - policy.mean).square()) / (2 * student) - 0.5
    total = total + (kl.sum(-1) * samples["weight"][t]).sum()
  total.backward()
  torch.testing.assert_close(found, one.optimizer.gradient, rtol=1e-9, atol=1e-9)
  assert float(found.abs().max()) > 0.1


@pytest.mark.parametrize("loss", DistillLoss)
def test_a_student_that_can_becomes_the_teacher(loss):
  """Both are linear. The teacher has moments of its own; those of a student would drift to the end."""
  teacher = make_teacher(64, hidden=[])
  words = {"ppo.hidden": [], "ppo.normalize_obs": False, "distill.loss": loss, "env.force": 0.02}
  one = make_student([teacher], num_envs=64, **words, **{"distill.mix_steps": 5000})
  for rate, count in ((0.02, 40), (0.003, 40), (0.0003, 20)):
    one.optimizer.rate.fill_(rate)
    one.report()
    iterate(one, count)
  obs = {"policy": torch.rand(100, 2) - 0.5, "critic": torch.zeros(100, 3)}
  restart = torch.ones(100, dtype=torch.bool)
  mode = one.agent.act(obs, one.agent.start(100), restart)[0].mode()[0]
  aim = teacher.agent.act({"policy": obs["policy"]}, one.agent.start(100), restart)[0]
  torch.testing.assert_close(mode, aim.mode()[0], rtol=0, atol=1e-3)
  report = one.report()
  assert float(report["teacher_error"]) < 1e-6
  assert float(report["teacher_share"]) == 0
  if loss is DistillLoss.kl:
    torch.testing.assert_close(one.network.head.log_std, aim.log_std, rtol=0, atol=1e-3)
    assert float(report["kl"]) < 1e-4


def test_a_student_that_sees_less_learns_what_can_be_seen():
  """A teacher's action along x depends on y alone, which the student cannot see: along y it learns it."""
  teacher = make_teacher(64, hidden=[], dims={"policy": 2})
  with torch.no_grad():
    teacher.agent.network.head.output.weight.copy_(torch.tensor([[0.0, 0.3], [0.3, 0.0]]))
    teacher.agent.network.head.output.bias.zero_()
  one = make_student([teacher], taught_toy, 64, **{"ppo.hidden": [], "distill.lr": 0.02, "env.force": 0.02})
  assert (one._group, one.agent.spaces.obs_dims) == ("teacher", {"policy": 1, "critic": 3})
  iterate(one, 80)
  one.collect()
  policy, _ = one.network.act(
    one.rollout.samples["obs"], one.rollout.states[0], one.rollout.samples["restart"]
  )
  errors = (policy.mode() - one.rollout.samples["label"][..., :2]).square().mean((0, 1)).sqrt()
  spread = one.rollout.samples["label"][..., 0].std()
  assert errors[1] < 0.02 < errors[0]
  assert errors[0].item() == pytest.approx(float(spread), rel=0.1)


def test_the_teacher_drives_less_and_less():
  settings = DistillConfig(mix=0.8, mix_steps=100)
  assert [teacher_share(settings, steps) for steps in (0, 50, 100, 999)] == pytest.approx([0.8, 0.4, 0, 0])
  one = make_student([make_teacher(64)], num_envs=64, **{"distill.mix": 0.5, "distill.mix_steps": 2 * 64 * 8})
  driven = []
  for _ in range(3):
    iterate(one, 1)
    driven.append(float(one._driven.double().mean()))
  assert 0.3 < driven[0] < 0.7
  assert 0.1 < driven[1] < 0.4
  assert driven[2] == 0


@pytest.mark.parametrize("mix", [0, 1])
def test_the_driver_acts(mix, monkeypatch):
  """A still teacher and a student that rushes off: the points move only where the student drives."""
  teacher = make_teacher(32, hidden=[])
  one = make_student([teacher], **{"distill.mix": mix, "distill.mix_steps": 10**9})
  with torch.no_grad():
    for agent, mean in ((teacher.agent, 0.0), (one.agent, 2.0)):
      for name, parameter in agent.network.head.named_parameters():
        parameter.fill_({"output.weight": 0, "output.bias": mean, "log_std": -9}[name])
  speeds = []
  step = one.env.step
  monkeypatch.setattr(one.env, "step", lambda action: speeds.append(action.abs().amax()) or step(action))
  one.collect()
  assert float(max(speeds)) == pytest.approx(2 * (1 - mix), abs=0.01)


def scores(learner) -> dict[str, float]:
  """Return what episodes say of a student and its teachers since the last call."""
  report = learner.report()
  return {name: float(report[name]) for name in ("episodes", "return", "length", "teacher_return")}


def by_hand(steps) -> dict[str, float]:
  """Return the same of (driven, reward, ended), [num_envs] each, of every step since the start."""
  own, taught = [], []
  for env in range(len(steps[0][0])):
    episode, first = [], True  # the first episode does not count
    for driven, reward, ended in steps:
      episode.append((bool(driven[env]), float(reward[env])))
      if ended[env]:
        drivers, rewards = zip(*episode, strict=True)
        if not first and len({*drivers}) == 1:
          (taught if drivers[0] else own).append((sum(rewards), len(rewards)))
        episode, first = [], False
  return {
    "episodes": len(own),
    "return": sum(return_ for return_, _ in own) / len(own),
    "length": sum(length for _, length in own) / len(own),
    "teacher_return": sum(return_ for return_, _ in taught) / len(taught),
  }


@pytest.mark.parametrize("known", [True, False])
def test_scores_are_of_whole_episodes_of_one_driver(known, monkeypatch):
  """Also after a resume; of a checkpoint without the drivers, the running episodes do not count."""

  def make():
    words = {"distill.mix": 0.9, "distill.mix_steps": 64 * 8 * 40, "env.episode_steps": 10}
    one, steps = make_student([make_teacher(64)], num_envs=64, graphs="off", **words), []
    step = one.env.step

    def recorded(action):
      found = step(action)
      ended = found["terminated"] | found["truncated"]
      steps.append((one._driven.clone(), found["reward"].clone(), ended.clone()))
      return found

    monkeypatch.setattr(one.env, "step", recorded)
    return one, steps

  one, steps = make()
  iterate(one, 16)
  expected = by_hand(steps)
  assert scores(one) == pytest.approx(expected, rel=1e-6)
  assert expected["episodes"] > 30
  state = to_cpu(one.state_dict())
  if not known:
    del state["ranks"][0]["driven"]
  other, more = make()
  other.load_state_dict(state)
  iterate(other, 8)
  told = scores(other)["episodes"]
  assert told == (
    by_hand(steps + more)["episodes"] - expected["episodes"] if known else by_hand(more)["episodes"]
  )


def test_discrete_actions_are_taught():
  teacher = make_teacher(64, choices=(3, 2), hidden=[])
  one = make_student([teacher], toy_choices, 64, **{"ppo.hidden": [], "distill.lr": 0.02})
  iterate(one, 40)
  one.report()
  iterate(one, 10)
  report = one.report()
  assert float(report["kl"]) < 0.01
  assert float(report["teacher_error"]) < 0.05  # share of choices that differ
  with pytest.raises(ConfigError, match=r"^distill.loss=mse needs continuous actions"):
    make_student([teacher], toy_choices, **{"distill.loss": "mse"})


def test_ppo_goes_on_from_a_student(caplog):
  one = iterate(make_student([make_teacher(32)]), 3)
  config = assign(defaults(toy), {"ppo.precision": "float64", "num_envs": 32})
  ppo = PPO(toy.Task(config.env, 32, random=Random(0, 32)), config, World())
  with caplog.at_level(logging.INFO):
    ppo.load_policy(one.state_dict())
  assert caplog.messages == ["the critic is new: the policy was distilled, and has learnt no values"]
  assert all(map(torch.equal, one.network.state_dict().values(), ppo.network.state_dict().values()))
  assert torch.equal(one.observations.moments["policy"].mean, ppo.observations.moments["policy"].mean)
  ppo.collect()
  ppo.update()
  assert math.isfinite(float(ppo.report()["kl"]))


def test_the_critic_stays_as_it_starts():
  one = make_student([make_teacher(32)])
  before = {name: x.clone() for name, x in one.network.state_dict().items()}
  iterate(one, 2)
  for name, x in one.network.state_dict().items():
    assert torch.equal(x, before[name]) == name.startswith(("critic", "value")), name


def test_what_distillation_does_not_use_are_settings_of_ppo():
  assert set(OF_REWARDS) < set(vars(PPOConfig()))
