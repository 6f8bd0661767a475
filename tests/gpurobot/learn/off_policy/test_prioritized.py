import pytest
import torch

from gpurobot.learn.off_policy import setup
from gpurobot.learn.off_policy.prioritized import LEAST, PrioritizedSampler, SumTree
from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import blocks
from tests.gpurobot.learn.off_policy.test_base import make as learner
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.learn.test_replay_buffer import fill, make

CPU = torch.device("cpu")


def tree(*leaves: list[float]) -> SumTree:
  one = SumTree(len(leaves), len(leaves[0]), CPU)
  one.fill(torch.tensor(leaves, dtype=torch.float64))
  return one


def test_a_tree_finds_what_a_running_sum_finds():
  values = [[1.0, 0.0, 2.0, 3.0, 0.5, 0.0], [0.0, 0.0, 4.0, 0.0, 0.25, 1.0]]
  one = tree(*values)
  assert one.total.flatten().tolist() == [6.5, 5.25]
  for row, leaves in enumerate(values):
    edges = torch.tensor(leaves, dtype=torch.float64).cumsum(0)
    mass = torch.linspace(0, float(edges[-1]) - 1e-9, 1000, dtype=torch.float64)
    found = one.find(mass.expand(2, -1) * one.total / one.total[row])[row]
    assert torch.equal(found, torch.searchsorted(edges, mass, right=True))


@pytest.mark.parametrize("leaves", [1, 2, 5, 8, 33])
def test_writes_leave_the_sums_exact(leaves):
  one, other = SumTree(3, leaves, CPU), SumTree(3, leaves, CPU)
  numbers, values = torch.Generator().manual_seed(0), torch.zeros(3, leaves, dtype=torch.float64)
  for _ in range(20):
    leaf = torch.randint(leaves, (3, 4), generator=numbers)
    value = torch.rand(3, 4, generator=numbers, dtype=torch.float64)
    one.write(leaf, value)
    for row in range(3):
      for i in set(leaf[row].tolist()):
        values[row, i] = value[row][leaf[row] == i].max()
  other.fill(values)
  assert torch.equal(one.nodes, other.nodes)
  assert torch.equal(one.at(torch.arange(leaves).expand(3, -1)), values)
  torch.testing.assert_close(one.total[:, 0], values.sum(1), rtol=1e-12, atol=0)


def test_what_has_no_priority_is_never_found():
  one = tree([0.0, 0.1, 0.2, 0.0, 0.0])
  mass = torch.tensor([[0.0, 0.1, 0.3, 0.30000000000000004, 5.0]], dtype=torch.float64)
  assert one.find(mass).tolist() == [[1, 2, 2, 2, 2]]


def sampler(replay, count, n_step=1, exponents=(1.0, 1.0, 1), size=1, rank=0) -> PrioritizedSampler:
  local = blocks(replay.num_envs * size, count * size) // size
  return PrioritizedSampler(replay, count, n_step, Random(0, local, rank * local), exponents)


def collect(count: int, replay, *samplers: PrioritizedSampler) -> None:
  for _ in range(count):
    fill(replay, [0.0])
    for deal in samplers:
      deal.add()


def test_new_transitions_are_drawn_once_they_are_complete():
  replay = make(length=6)
  deal = sampler(replay, 60, n_step=2)
  expected = [(1, set()), (2, {0}), (1, {0, 1}), (1, {0, 1, 2}), (1, {0, 1, 2, 3}), (3, {3, 4, 5, 0})]
  for steps, complete in expected:
    collect(steps, replay, deal)
    draw = deal.draw()
    assert not complete or set(draw.rows.tolist()) == complete
    if complete:
      assert draw.weight.tolist() == pytest.approx([1] * 60)
      assert torch.equal((replay.position - draw.age) % 6, draw.rows)
      assert int(draw.age.max()) <= int(replay.filled)


def test_draws_follow_the_errors_and_weights_undo_it():
  replay = make(num_envs=2, length=5)
  deal = sampler(replay, 9)  # one block of two environments
  collect(5, replay, deal)
  error = {(row, env): 0.5 + row + 10 * env for row in range(5) for env in range(2)}
  for _ in range(30):  # each transition is drawn at least once
    draw = deal.draw()
    keys = list(zip(draw.rows.tolist(), draw.envs.tolist(), strict=True))
    deal.learn(torch.tensor([error.get(key, 0.0) for key in keys]))
  known = {key: value + LEAST for key, value in error.items() if key[0] != 4}  # row 4 has no next one
  assert float(deal.tree.total.sum()) == pytest.approx(sum(known.values()))
  seen: dict[tuple[int, int], int] = {}
  for _ in range(500):
    draw = deal.draw()
    for row, env, weight in zip(draw.rows.tolist(), draw.envs.tolist(), draw.weight.tolist(), strict=True):
      seen[row, env] = seen.get((row, env), 0) + 1
      assert weight == pytest.approx(sum(known.values()) / known[row, env] / len(known))
  share = {key: count / 4500 for key, count in seen.items()}
  assert share == pytest.approx({key: p / sum(known.values()) for key, p in known.items()}, abs=0.03)


def test_exponents():
  """Beta goes from 0.25 to 1 within four draws."""
  replay = make(length=3)
  deal = sampler(replay, 4, exponents=(0.5, 0.25, 4))
  collect(3, replay, deal)
  draw = deal.draw()
  deal.learn(torch.where(draw.rows == 0, 9.0, 1.0) - LEAST)
  assert sorted(deal.tree.at(torch.arange(3)[None]).flatten().tolist()) == pytest.approx([0, 1, 3])
  for beta in (0.625, 0.8125, 1.0, 1.0):
    draw = deal.draw()
    expected = {0: (2 * 3 / 4) ** -beta, 1: (2 * 1 / 4) ** -beta}
    assert draw.weight.tolist() == pytest.approx([expected[row] for row in draw.rows.tolist()])


def test_errors_that_are_not_finite_change_nothing():
  replay = make(length=4)
  deal = sampler(replay, 6)
  collect(4, replay, deal)
  before = deal.tree.nodes.clone()
  deal.draw()
  deal.learn(torch.full((6,), torch.nan))
  deal.learn(torch.full((6,), torch.inf))
  assert torch.equal(deal.tree.nodes, before)
  assert deal.largest.tolist() == [[1]]


def test_new_transitions_get_the_largest_priority():
  replay = make(length=8)
  deal = sampler(replay, 4)
  collect(3, replay, deal)
  deal.draw()
  deal.learn(torch.full((4,), 5.0))
  collect(1, replay, deal)
  assert float(deal.tree.at(torch.tensor([[2]]))) == pytest.approx(5 + LEAST)


def test_ranks_draw_what_one_draws():
  whole, part = make(num_envs=8), make(num_envs=4)
  one, many = sampler(whole, 16), [sampler(part, 8, size=2, rank=rank) for rank in range(2)]
  collect(6, whole, one)
  collect(6, part, *many)
  error = torch.linspace(0, 3, 16)
  for _ in range(5):
    draw, parts = one.draw(), [deal.draw() for deal in many]
    assert torch.equal(draw.rows, torch.cat([part.rows for part in parts]))
    assert torch.equal(draw.envs, torch.cat([part.envs + 4 * rank for rank, part in enumerate(parts)]))
    assert torch.equal(draw.weight, torch.cat([part.weight for part in parts]))
    one.learn(error)
    for deal, own in zip(many, error.chunk(2), strict=True):
      deal.learn(own)


@pytest.mark.parametrize("name", ["sac", "td3"])
def test_priorities_weigh_the_critics_loss_alone(name):
  """As in the paper: what policy and temperature minimise is the mean over the batch."""
  one = iterate(learner(name, prioritized=True), 5)
  assert one.batch.weight.tolist() == [1.0] * 64
  importance = one.batch.importance
  assert importance.unique().numel() > 1
  assert float(one._policy_objective()[1][0]) == 64
  assert float(one._critic_objective()[1][0]) == pytest.approx(float(importance.sum()))


@pytest.mark.parametrize(("steps", "beta"), [(16 * 50, 0.4 + 0.6 * 64 / 100), (16, 1.0)])
def test_the_exponent_of_the_weights_rises_with_the_environment_steps(steps, beta, monkeypatch):
  """Of 16 environments; two gradient steps after each of their steps, 64 in four iterations of eight."""
  monkeypatch.setattr(setup, "PRIORITY_STEPS", steps)
  one = iterate(learner(prioritized=True), 5)
  assert int(one.sampler.random.step) == 64
  assert float(one.sampler.beta) == pytest.approx(beta)
