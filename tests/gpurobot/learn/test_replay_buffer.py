from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tensordict import TensorDict

from gpurobot.learn.normalize import Moments
from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import (
  KINDS,
  Replay,
  ReplaySampler,
  StoredObs,
  Transitions,
  blocks,
  decode,
  encode,
  replay_bytes,
)
from gpurobot.settings.algorithms import Storage
from tests.gpurobot.toy import Config, Task

GAMMA = 0.5
FLOAT = torch.float64


def make(num_envs: int = 1, horizon: int = 1, length: int = 8, limit: int = 20) -> Replay:
  env = Task(Config(episode_steps=limit), num_envs, random=Random(0, num_envs))
  return Replay(env, horizon, length, (FLOAT, FLOAT))


def numbers(replay: Replay, value: float) -> dict[str, torch.Tensor]:
  """Return observations that all are a value."""
  widths = {group: memory.shape[-1] for group, memory in replay.memory["obs"].items()}
  return {group: torch.full((replay.num_envs, width), float(value)) for group, width in widths.items()}


def fill(replay: Replay, rewards: list[float], **ends: list[int]) -> None:
  """Store steps of these rewards; observation t is t, and a final one -t.

  `ends` are the steps at which all environments are "terminated", "truncated" or "invalid".
  """
  steps: Iterator[dict[str, Any]] = iter(())
  for t, reward in enumerate(rewards):
    sample = next(steps, None)
    if sample is None:  # the next collection
      steps = iter(replay.steps)
      sample = next(steps)
    replay.keep_obs(numbers(replay, t), {})
    sample["action"].fill_(t / 100)
    sample["reward"].fill_(reward)
    for name in ("terminated", "truncated"):
      sample[name].fill_(t in ends.get(name, []))
    sample["valid"].fill_(t not in ends.get("invalid", []))
    replay.keep_final(numbers(replay, -t), torch.zeros(0), sample["truncated"])
  next(steps, None)


def transition(replay: Replay, row: int, n_step: int) -> Transitions:
  zero = torch.zeros(1, dtype=torch.int64)
  return replay.transitions(zero + row, zero, (n_step, GAMMA), lambda reward: 2 * reward)


def told(found: Transitions) -> tuple[float, float, float, float, float]:
  """Return observation, reward, next observation, discount and weight of one transition."""
  for obs in (found.obs, found.next_obs):
    assert len({float(x) for group in obs.values() for x in group.flatten()}) == 1  # of one step
  parts = (found.obs["policy"][:, 0], found.reward, found.next_obs["critic"][:, 0])
  return tuple(float(part) for part in (*parts, found.discount, found.weight))


@pytest.mark.parametrize(
  ("n_step", "ends", "expected"),
  [
    (1, {}, (1, 20, 2, 0.5, 1)),
    (3, {}, (1, 2 * (10 + 100 / 2 + 1000 / 4), 4, 0.125, 1)),
    (3, {"terminated": [2]}, (1, 2 * (10 + 100 / 2), 3, 0, 1)),
    (3, {"truncated": [2]}, (1, 2 * (10 + 100 / 2), -2, 0.25, 1)),
    (3, {"truncated": [1]}, (1, 20, -1, 0.5, 1)),
    (3, {"truncated": [3]}, (1, 2 * (10 + 100 / 2 + 1000 / 4), -3, 0.125, 1)),
    (3, {"truncated": [4]}, (1, 2 * (10 + 100 / 2 + 1000 / 4), 4, 0.125, 1)),
    (3, {"invalid": [2]}, (1, 2 * (10 + 100 / 2 + 1000 / 4), 4, 0.125, 0)),
    (3, {"invalid": [4]}, (1, 2 * (10 + 100 / 2 + 1000 / 4), 4, 0.125, 1)),
    (3, {"terminated": [1], "invalid": [2]}, (1, 20, 2, 0, 1)),  # what follows an end is another episode's
  ],
)
def test_transitions_by_hand(n_step, ends, expected):
  replay = make()
  fill(replay, [1.0, 10.0, 100.0, 1000.0, 10000.0], **ends)
  assert told(transition(replay, 1, n_step)) == pytest.approx(expected)


def test_the_ring_forgets_the_oldest_steps_and_a_transition_goes_over_its_end():
  replay = make(length=4)
  fill(replay, [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0])  # rows: 4, 5, 2, 3
  assert (int(replay.position), int(replay.filled)) == (2, 4)
  assert told(transition(replay, 3, 2)) == (3, 2 * (1000 + 10000 / 2), 5, 0.25, 1)


def test_final_observations_stay_as_long_as_their_steps():
  """Episodes as short as they may be, in a ring that goes round many times."""
  replay = make(length=7, limit=3)
  last = 25
  fill(replay, [1.0] * (last + 1), truncated=list(range(0, last, 3)))
  for t in range(last - 5, last):  # row t + 1 is there
    assert told(transition(replay, t % 7, 1))[2] == (-t if t % 3 == 0 else t + 1)


def test_newest_are_the_steps_of_the_last_collection():
  replay = make(horizon=3, length=4)
  fill(replay, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
  assert replay.newest("reward").flatten().tolist() == [4, 5, 6]


def sampler(
  replay: Replay, count: int, seed: int = 0, place: tuple[int, int] = (1, 0), n: int = 1, batches: int = 1
) -> ReplaySampler:
  size, rank = place
  local = blocks(replay.num_envs * size, count * size) // size
  return ReplaySampler(replay, count, n, Random(seed, local, rank * local), batches)


def test_draws_are_uniform_over_what_can_be_drawn():
  """The chi-squared statistic of 6 x 5 equally likely transitions is 30 +- 8 if all is right."""
  replay = make(num_envs=6, length=8)
  fill(replay, [0.0] * 11)
  deal, count = sampler(replay, 3000, n=3), torch.zeros(8, 6)
  for _ in range(10):
    rows, envs, age, _ = deal.draw()
    assert torch.equal((replay.position - age) % 8, rows)
    count.index_put_((rows, envs), torch.ones(3000), accumulate=True)
  assert (count.sum(1) > 0).tolist() == [t not in (1, 2, 0) for t in range(8)]  # the newest rows wait
  seen = count[count > 0]
  assert len(seen) == 30
  assert float((seen - 1000).square().sum() / 1000) < 70


def test_each_block_of_environments_gives_equally_many():
  replay = make(num_envs=6, length=8)
  fill(replay, [0.0] * 8)
  for envs in sampler(replay, 15, batches=2).draw().envs.split(15):
    assert (envs // 2).bincount().tolist() == [5, 5, 5]


@pytest.mark.parametrize("batches", [1, 3])
def test_ranks_draw_what_one_draws(batches):
  whole, part = make(num_envs=8), make(num_envs=4)
  for replay in (whole, part):
    fill(replay, [0.0] * 6)
  one = sampler(whole, 16, batches=batches)
  many = [sampler(part, 8, place=(2, rank), batches=batches) for rank in range(2)]

  def union(parts: list[torch.Tensor]) -> torch.Tensor:
    """Return what the ranks have drawn, batch after batch."""
    return torch.cat([part.unflatten(0, (batches, 8)) for part in parts], 1).flatten(0, 1)

  for _ in range(3):
    draw, parts = one.draw(), [deal.draw() for deal in many]
    assert torch.equal(draw.rows, union([part.rows for part in parts]))
    assert torch.equal(draw.envs, union([part.envs + 4 * rank for rank, part in enumerate(parts)]))
    assert torch.equal(draw.age, union([part.age for part in parts]))
    assert torch.equal(one.normal("test", 3), union([deal.normal("test", 3) for deal in many]))


LENGTH, ENVS = 8, 20
CPU = torch.device("cpu")
# Largest error [standard deviations] at a deviation z: half a unit in the last place, or half a level.
ERRORS = {
  torch.float16: lambda z: 2**-11 * z.abs() + 2**-25,
  torch.bfloat16: lambda z: 2**-8 * z.abs(),
  torch.uint8: lambda z: 0.025 * (0.25 + z.square()).sqrt(),
}


@pytest.fixture
def env() -> Task:
  env = Task(Config(episode_steps=3), ENVS, random=Random(0, ENVS))
  env.obs_names = {"policy": ["position"] * 2, "critic": ["position", "far", "position"]}
  return env


@pytest.fixture
def moments(env) -> dict[str, Moments]:
  """Moments of observations far from 0, whose columns have different spreads."""
  found = {}
  for group, width in env.obs_dims.items():
    found[group] = Moments(width, CPU)
    found[group].accumulate(sample(width), torch.ones(ENVS))
    found[group].merge()
  return found


def sample(width: int) -> torch.Tensor:
  torch.manual_seed(width)
  return 50 + torch.randn(ENVS, width) * 10.0 ** torch.arange(width)


def written(env, storage, blocks=(), moments=None) -> tuple[StoredObs, TensorDict, dict[str, torch.Tensor]]:
  """Write observations to a row; return the codec, its memory and the observations."""
  stored = StoredObs(env, storage, blocks)
  memory = TensorDict(stored.allocate(LENGTH), batch_size=[LENGTH])
  obs = {group: sample(width) for group, width in env.obs_dims.items()}
  stored.write(memory, torch.tensor([5]), obs, moments or {})
  return stored, memory, obs


def read(stored: StoredObs, memory: TensorDict) -> dict[str, torch.Tensor]:
  return stored.read(memory, torch.full((ENVS,), 5), torch.arange(ENVS))


@pytest.mark.parametrize("kind", ERRORS)
def test_a_deviation_is_kept_as_closely_as_its_type_can(kind):
  z = torch.cat([torch.linspace(-100, 100, 20_001), torch.linspace(-1, 1, 2001)])
  found = decode(encode(z, kind))
  assert ((found - z).abs() <= ERRORS[kind](z)).all()
  assert encode(z, kind).dtype is kind
  assert float(decode(encode(torch.zeros(1), kind))) == 0


@pytest.mark.parametrize("kind", ERRORS)
def test_what_is_out_of_range_stays_finite(kind):
  most = 100 if kind is torch.uint8 else torch.finfo(kind).max
  found = decode(encode(torch.tensor([-torch.inf, torch.inf]), kind))
  torch.testing.assert_close(found, torch.tensor([-1.0, 1.0]) * most, rtol=4e-3, atol=0)


def test_only_uint8_has_no_nan():
  kept = torch.cat([decode(encode(torch.tensor([torch.nan]), kind)) for kind in ERRORS])
  torch.testing.assert_close(kept, torch.tensor([torch.nan, torch.nan, 0.0]), equal_nan=True)


def test_float32_is_kept_bit_by_bit_without_moments(env):
  stored, memory, obs = written(env, Storage.float32)
  assert set(memory.keys()) == {"obs"}
  assert all(torch.equal(found, obs[group]) for group, found in read(stored, memory).items())


@pytest.mark.parametrize("storage", [Storage.float16, Storage.bf16, Storage.uint8])
def test_raw_observations_come_back(env, moments, storage):
  """The error is in standard deviations, so that an offset of 50 takes no digits."""
  stored, memory, obs = written(env, storage, moments=moments)
  for group, found in read(stored, memory).items():
    shift, scale = moments[group].unit
    z = (obs[group] - shift) / scale
    assert ((found - obs[group]).abs() <= 1.01 * ERRORS[KINDS[storage]](z) * scale + 1e-5).all()
    assert not torch.equal(found, obs[group])


def test_later_moments_do_not_change_what_is_kept(env, moments):
  stored, memory, _ = written(env, Storage.uint8, moments=moments)
  before = read(stored, memory)
  for own in moments.values():
    own.rescale(torch.tensor([10.0], dtype=torch.float64))
  after = read(stored, memory)
  assert all(torch.equal(after[group], found) for group, found in before.items())


def test_only_the_named_blocks_are_rounded(env, moments):
  stored, memory, obs = written(env, Storage.uint8, ["far"], moments)
  found = read(stored, memory)
  assert torch.equal(found["policy"], obs["policy"])
  assert (found["critic"] == obs["critic"]).all(0).tolist() == [True, False, True]
  assert memory["small", "critic"].shape == (LENGTH, ENVS, 1)
  assert "policy" not in memory["small"].keys()  # noqa: SIM118


@pytest.mark.parametrize("storage", Storage)
@pytest.mark.parametrize("blocks", [[], ["far"]])
def test_bytes_are_those_of_the_memory(env, storage, blocks):
  stored = StoredObs(env, storage, blocks)
  replay = Replay(env, 1, LENGTH, (torch.float32, torch.float32), stored)
  parts = [*replay.memory.values(True, True), *replay.final_obs.values()]
  needed = sum(part.numel() * part.element_size() for part in parts)
  assert replay_bytes(env, LENGTH, torch.float32, stored) == needed
