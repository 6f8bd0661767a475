from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import Replay, ReplaySampler, Transitions, blocks
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


def test_a_saved_ring_goes_on_alike():
  one, other = make(length=5, limit=2), make(length=5, limit=2)
  fill(one, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], truncated=[1, 3, 5])
  other.load_state_dict(one.state_dict())
  other.load_rows(0, one.memory)
  for replay in (one, other):
    fill(replay, [8.0, 9.0], truncated=[1])
  for row in range(5):
    assert told(transition(one, row, 2)) == told(transition(other, row, 2))
  one.clear()
  assert (int(one.filled), int(one.position)) == (0, 0)


def test_the_newest_row_of_a_part():
  """Rows written so far: 1 ... 6 in rows 0 ... 5; then 5 ... 10 in rows 4, 5, 0, 1, 2, 3."""
  replay, parts = make(length=6), (slice(0, 2), slice(2, 4), slice(4, 6))
  found = []
  for count in (0, 1, 3, 6, 10):
    replay.written = count
    found.append([max(0, replay.newest_in(part)) for part in parts])
  assert found == [[0, 0, 0], [1, 0, 0], [2, 3, 0], [2, 4, 6], [8, 10, 6]]
