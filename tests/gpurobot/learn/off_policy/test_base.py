import copy
import math
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from gpurobot.device import usage
from gpurobot.device.distributed import World
from gpurobot.device.tape import Tape
from gpurobot.learn import optimizer
from gpurobot.learn.agent import restored
from gpurobot.learn.algorithm import counted
from gpurobot.learn.off_policy import setup
from gpurobot.learn.off_policy.base import OffPolicy
from gpurobot.learn.off_policy.sac import SAC
from gpurobot.learn.off_policy.td3 import TD3
from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import StoredObs, replay_bytes
from gpurobot.settings.algorithms import SACConfig
from gpurobot.settings.config import ConfigError, assign, defaults, local_envs
from gpurobot.training import LEARNERS
from tests.gpurobot import toy
from tests.gpurobot.learn.test_ppo import iterate

SMALL = {
  "horizon": 8,
  "updates_per_step": 2,
  "n_step": 1,
  "batch_size": 64,
  "buffer_size": 1024,
  "hidden": [8],
  "critic_hidden": [8],
  "precision": "float64",
}
PRIORITIZED = {"prioritized": True, "critic": "scalar", "storage": "uint8"}
both = pytest.mark.parametrize("name", ["sac", "td3"])


def make(name: str = "sac", num_envs: int = 16, graphs: str = "auto", **own: Any) -> OffPolicy:
  words = {f"{name}.{key}": value for key, value in (SMALL | own).items()}
  config = assign(defaults(toy), words | {"algorithm": name, "num_envs": num_envs, "graphs": graphs})
  env = toy.Task(config.env, num_envs, random=Random(0, num_envs))
  learner = LEARNERS[config.algorithm](env, config, World())
  assert isinstance(learner, OffPolicy)
  return learner


def tensors(state: object) -> list[torch.Tensor]:
  return [leaf.clone() for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor)]


def saved(learner: OffPolicy) -> tuple[dict[str, Any], Any]:
  """Return the complete state, with the rows of the buffer if checkpoints keep them."""
  return copy.deepcopy((learner.state_dict(), learner.buffer and learner.buffer.memory))


def load(learner: OffPolicy, state: tuple[dict[str, Any], Any]) -> None:
  learner.load_state_dict(state[0])
  if learner.buffer:
    learner.buffer.load_rows(0, state[1])


def same(found: object, expected: object) -> None:
  torch.testing.assert_close(tensors(found), tensors(expected), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("name", "own", "message"), [
  ("sac", {"buffer_size": 63}, "sac.buffer_size=63 is less than sac.batch_size=64; write a larger one"),
  ("td3", {"greedy_envs": 17}, "td3.greedy_envs=17 is more than num_envs=16; write fewer"),
  ("sac", {"n_step": 21}, "sac.n_step=21 is more than the 20 steps of an episode; write fewer"),
  ("td3", {"buffer_size": 127},
   "td3.buffer_size=127 is too small for num_envs=16, td3.horizon=8 and td3.n_step=1; the smallest is 128"),
  ("sac", {"buffer_size": 80, "horizon": 1, "n_step": 5},
   "sac.buffer_size=80 is too small for num_envs=16, sac.horizon=1 and sac.n_step=5; the smallest is 96"),
  ("td3", {"noise_min": 0.5}, "td3.noise_min=0.5 must not be greater than td3.noise_max=0.4"),
  ("sac", {"log_std_init": -6.0}, "sac.log_std_init=-6 must be greater than sac.log_std_min=-5"),
])  # fmt: skip
def test_settings_that_contradict_each_other_are_named(name, own, message):
  with pytest.raises(ConfigError) as found:
    make(name, **own)
  assert str(found.value) == message


def test_the_least_buffer_trains():
  assert int(iterate(make(buffer_size=128), 3).report()["skipped_updates"]) == 0


def test_a_buffer_that_does_not_fit_is_refused_with_the_largest_that_does(monkeypatch):
  monkeypatch.setattr(setup, "total_memory", lambda _: 10**6)
  with pytest.raises(ConfigError, match=r"^sac.buffer_size=100000: a replay buffer of 0 GB") as end:
    make(buffer_size=100_000)
  largest = int(str(end.value).rpartition(" ")[2])
  env = make(buffer_size=largest).env
  assert replay_bytes(env, largest // 16, torch.float64, StoredObs(env)) <= 0.8 * 10**6
  monkeypatch.undo()
  assert usage.total_memory(torch.device("cpu")) > 10**9


def test_choices_are_not_for_it(monkeypatch):
  monkeypatch.setattr(toy.Task, "choices", (3, 3))
  with pytest.raises(ConfigError, match=r"^algorithm=td3 needs continuous actions"):
    make("td3")


def test_environments_must_divide_among_the_ranks():
  config = assign(defaults(toy), {"algorithm": "sac", "num_envs": 12, "sac.batch_size": 64})
  assert local_envs(config, 4) == 3
  with pytest.raises(ConfigError, match=r"^num_envs=12 and sac.batch_size=64 .* among 8"):
    local_envs(config, 8)


@pytest.mark.parametrize(
  ("name", "own"), [("sac", {}), ("td3", PRIORITIZED), ("td3", PRIORITIZED | {"save_buffer": False})]
)
def test_a_resumed_training_goes_on_alike(name, own):
  """Without its buffer it goes on alike from two equal checkpoints, with new samples."""
  save_buffer = own.get("save_buffer", True)
  one = iterate(make(name, **own), 5)
  state = saved(one)
  assert ("replay" in state[0]["ranks"][0]) == save_buffer
  others = [iterate(make(name, **own), count) for count in (0, 3)]
  for other in others:
    load(other, state)
    iterate(other, 4)
  iterate(one, 4)
  same(saved(others[0]), saved(others[1]))
  if save_buffer:
    same(saved(others[0]), saved(one))


def test_replayed_gradient_steps_have_the_bits_of_called_ones():
  """Python calls them in the first iteration alone; other settings are in `test_capture.py`."""
  own = {"critic": "scalar", "prioritized": True, "activation": "relu", "layer_norm": False}
  learners = [make(graphs=graphs, **own) for graphs in ("auto", "off")]
  for one in learners:
    iterate(one, 5)
  assert [isinstance(one.executor._graphs[one._step_policy], Tape) for one in learners] == [True, False]
  reports = [one.report() for one in learners]
  same(*reports)
  same(*(saved(one) for one in learners))


def test_a_new_buffer_is_filled_before_learning_goes_on():
  state = iterate(make(save_buffer=False), 5).state_dict()
  other = make(save_buffer=False)
  other.load_state_dict(state)
  weights = [parameter.detach().clone() for parameter in other.network.parameters()]
  assert other.first_update == 1
  iterate(other, 1)
  same(list(other.network.parameters()), weights)
  iterate(other, 1)
  assert not torch.equal(weights[0], next(iter(other.network.parameters())))


def test_a_block_that_the_task_lacks_is_named(monkeypatch):
  names = {"policy": ["position"] * 2, "critic": ["position", "position", "distance"]}
  monkeypatch.setattr(toy.Task, "obs_names", names, raising=False)
  iterate(make(storage="uint8", storage_blocks=["distance"]), 3)
  with pytest.raises(ConfigError, match=r"^sac.storage_blocks: .* 'distanc'; the nearest is 'distance'$"):
    make(storage="uint8", storage_blocks=["distanc"])


@both
def test_targets_follow_the_critics(name):
  one = iterate(make(name, updates_per_step=1, horizon=1, learning_starts=2, tau=0.25, reward_scale=1), 1)
  same(one.targets.state_dict(), one.critics.state_dict())
  before = tensors(list(one.targets.parameters()))
  iterate(one, 1)
  pairs = zip(before, one.critics.parameters(), strict=True)
  torch.testing.assert_close(list(one.targets.parameters()), [a + 0.25 * (b - a) for a, b in pairs])


@both
def test_the_average_follows_the_policy(name, monkeypatch):
  """Of four steps the first two count alike, and then tau is more than 1 / 3."""
  monkeypatch.setattr(optimizer, "SHARE", 0.4)
  one = make(name, updates_per_step=1, policy_delay=1, horizon=1, learning_starts=2)
  before = tensors(list(one.average.network.parameters()))
  same(before, list(one.network.parameters()))
  iterate(one, 1)
  policies = [tensors(list(iterate(one, 1).network.parameters())) for _ in range(4)]
  expected = [a / 2 + b / 2 for a, b in zip(*policies[:2], strict=True)]
  for policy in policies[2:]:
    expected = [a + 0.4 * (b - a) for a, b in zip(expected, policy, strict=True)]
  torch.testing.assert_close(list(one.average.network.parameters()), expected)


@both
def test_the_average_acts_and_learning_goes_on_from_the_policy(name):
  one = iterate(make(name), 3)
  saved = one.policy_dict()
  same(restored(saved, one.settings, one.device).network.state_dict(), one.average.network.state_dict())
  other = make(name)
  other.load_policy({key: value for key, value in saved.items() if key != "average"})  # an older checkpoint
  same(other.network.state_dict(), one.network.state_dict())
  same(other.average.network.state_dict(), one.network.state_dict())


def test_the_policy_learns_after_every_second_step_of_the_critics(monkeypatch):
  one = make(updates_per_step=1, horizon=6, learning_starts=6, policy_delay=2)
  steps: list[str] = []
  for piece in ("_train_critics", "_train_policy"):
    monkeypatch.setattr(one, piece, lambda piece=piece: steps.append(piece))
  iterate(one, 1)
  assert steps == ["_train_critics", "_train_policy", "_train_critics"] * 3


@both
def test_the_policys_step_leaves_the_critics_as_they_are(name):
  one = iterate(make(name), 3)
  critics, network = tensors(one.critics.state_dict()), tensors(one.network.state_dict())
  one._train_policy()
  same(one.critics.state_dict(), critics)
  assert not all(map(torch.equal, network, tensors(one.network.state_dict())))


@both
def test_first_actions_are_uniform(name):
  one = make(name, learning_starts=8, num_envs=256, batch_size=256, buffer_size=8192)
  one.collect()
  action = one.replay.newest("action")
  assert float(action.abs().max()) <= 1
  assert float(action.std()) == pytest.approx(1 / math.sqrt(3), rel=0.05)
  iterate(one, 1)
  one.collect()
  assert float(one.replay.newest("action").std()) < 0.5


@both
def test_greedy_environments_act_without_noise(name, monkeypatch):
  one = make(name, horizon=1, learning_starts=1, greedy_envs=4)
  monkeypatch.setattr(one, "explore", lambda policy: torch.full_like(policy.mean, 0.5))
  one.collect()
  assert not (one.replay.newest("action") == 0.5).any()  # all are random before learning starts
  policy = one.network({"policy": one.agent.batch(one.collector.obs)["policy"].squeeze(0)})
  one.collect()
  (action,) = one.replay.newest("action")
  greedy = torch.arange(16) % 4 == 0
  torch.testing.assert_close(action[greedy], policy.action(policy.mode())[greedy].to(action.dtype))
  assert (action[~greedy] == 0.5).all()
  assert "greedy_return" in one.report()


def test_td3_explores_with_a_scale_for_each_environment():
  one = make("td3", num_envs=256, batch_size=256, buffer_size=256 * 64, horizon=64, learning_starts=1)
  for parameter in one.network.parameters():
    torch.nn.init.zeros_(parameter)
  one.collect()
  std = one.replay.newest("action")[1:].std((0, 2))
  assert isinstance(one, TD3)
  torch.testing.assert_close(std, one._scale[:, 0], rtol=0.35, atol=0)
  assert 0.001 <= float(std.min()) < 0.02
  assert 0.35 < float(std.max()) < 0.5


def test_sac_follows_its_target_entropy():
  """The entropy of two actions on [-1, 1] is at most 2 log 2."""
  one = make(target_entropy=0.3, alpha=0.1, lr=1e-2)
  assert isinstance(one, SAC)
  iterate(one, 20)
  one.report()
  iterate(one, 5)
  assert float(one.report()["entropy"]) == pytest.approx(2 * 0.3, abs=0.3)


@both
def test_the_report_tells_of_the_replay_buffer(name):
  one = make(name)
  assert float(one.report()["replay/filled"]) == 0
  iterate(one, 4)
  report = {key: float(value) for key, value in one.report().items()}
  assert report["replay/filled"] == 32 * 16 / 1024
  assert report["updates_per_sample"] == 2 * 64 / 16
  assert 10 < report["sample_age"] < 17  # means of 2 ... 16, 2 ... 24 and 2 ... 32
  assert ("temperature" in report) == (name == "sac")
  assert not any(
    math.isnan(report[key]) for key in ("value_loss", "policy_loss", "value/mean", "gradient_norm")
  )


@both
def test_one_line_says_what_trains(name):
  threads = counted(torch.get_num_threads(), "thread")
  assert make(name, save_buffer=False).describe() == (
    f"16 environments on 1 cpu rank with {threads}; {name.upper()}, policy 2-8-2 silu, "
    "twin critics 5-8 silu, float64; 2 gradient steps of 64 transitions after each step; "
    "replay buffer of 1,024 transitions, 5.8e-05 GB per rank, not in the checkpoints"
  )


def test_a_policy_of_another_algorithm_or_critic_is_refused():
  """The command says it in one line, see `TrainingRun`."""
  with pytest.raises(ValueError, match=r"critics.head.output.weight"):
    make(critic="twohot").load_policy(make(critic="scalar").policy_dict())
  for one, other in ((make("sac"), make("td3")), (make("td3"), make("sac"))):
    with pytest.raises(ValueError, match=r"temperature|network"):
      other.load_policy(one.policy_dict())


@pytest.mark.parametrize(("own", "batches"), [
  ({"horizon": 8, "updates_per_step": 2, "batch_size": 4096}, 2),
  ({"horizon": 3, "updates_per_step": 4, "batch_size": 1000}, 6),
  ({"horizon": 3, "updates_per_step": 1, "batch_size": 4096}, 1),
  ({"horizon": 8, "updates_per_step": 2, "batch_size": 10000}, 1),
  ({"horizon": 2**32, "updates_per_step": 1000, "batch_size": 256}, 32),
])  # fmt: skip
def test_batches_of_one_draw_divide_the_gradient_steps_of_an_iteration(own, batches):
  assert setup.batches_per_draw(SACConfig(**own)) == batches


@both
@pytest.mark.parametrize("clipped", [True, False])
def test_the_smaller_value_of_an_action_counts_or_the_mean(name, clipped):
  learner = iterate(make(name, clipped_double_q=clipped), 3)
  action = torch.zeros_like(learner.batch.action)
  values = learner.critics(learner.batch.obs, action).value
  assert not torch.equal(values[0], values[1])
  torch.testing.assert_close(learner.evaluate(action), values.amin(0) if clipped else values.mean(0))
