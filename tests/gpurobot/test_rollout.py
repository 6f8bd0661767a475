import pytest
import torch
from tensordict import TensorDict

from gpurobot.random import Random
from gpurobot.rollout import Episodes, Means, Rollout, Shuffle
from tests.gpurobot.toy import Config, Task

CPU = torch.device("cpu")


def rollout(horizon: int, num_envs: int, limit: int = 1000) -> Rollout:
  env = Task(Config(episode_steps=limit), num_envs, random=Random(0, num_envs))
  return Rollout(env, horizon, torch.float64, torch.float64)


def test_advantages_by_hand():
  """Four environments with the same numbers; at step 1 nothing, an end, a time limit, a failure."""
  r = rollout(4, 4)
  r.samples["reward"][:] = torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None]
  r.samples["valid"][:] = True
  r.samples["terminated"][1, 1] = True
  r.samples["truncated"][1, 2] = True
  r.samples["valid"][1, 3] = False
  value = torch.tensor([2.0, 4.0, 8.0, 0.0], dtype=torch.float64)[:, None].expand(4, 4)
  last = torch.full((4,), 2.0, dtype=torch.float64)
  final = torch.full((1, 4), 6.0, dtype=torch.float64)
  advantage = r.advantages(value, last, final, (0.5, 0.5))
  assert advantage.T.tolist() == [
    [1.265625, 1.0625, -3.75, 5.0],
    [0.5, -2.0, -3.75, 5.0],  # delta = 2 + 0 - 4
    [1.25, 1.0, -3.75, 5.0],  # delta = 2 + 0.5 * 6 - 4
    [1.0, 0.0, -3.75, 5.0],
  ]


def test_a_reward_that_is_not_finite_stays_where_it_is():
  r = rollout(2, 1)
  r.samples["reward"][:, 0] = torch.tensor([1.0, torch.nan])
  r.samples["valid"][0] = True
  value = torch.ones(2, 1, dtype=torch.float64)
  assert r.advantages(value, value[0], value[:1], (0.5, 0.5)).flatten().tolist() == [0.5, 0.0]


def test_every_time_limit_of_a_rollout_keeps_its_own_observation():
  r = rollout(5, 2, limit=2)
  assert len(r.final_obs["policy"]) == 3
  truncations = torch.tensor([[1, 0], [0, 1], [1, 0], [0, 0], [1, 1]], dtype=torch.bool)
  for _ in range(2):  # the second iteration starts afresh
    r.restart()
    for t, truncated in enumerate(truncations):
      obs = {group: torch.full((2, width), float(t)) for group, width in Task.obs_dims.items()}
      r.keep_final(TensorDict(obs, [2]), truncated)
    assert r.final_obs["policy"][:, 0, 0].tolist() == [0, 2, 4]
    assert r.final_obs["critic"][:2, 1, 2].tolist() == [1, 4]
  r.samples["truncated"].copy_(truncations)
  r.samples["valid"][:] = True
  final = torch.tensor([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]], dtype=torch.float64)
  zeros = torch.zeros(5, 2, dtype=torch.float64)
  advantage = r.advantages(zeros, zeros[0], final, (1.0, 0.0))
  assert advantage.T.tolist() == [[10, 0, 30, 0, 50], [0, 20, 0, 0, 40]]


def test_episodes_sum_raw_returns():
  episodes = Episodes(3, CPU)
  no, yes = torch.tensor([False] * 3), torch.tensor([True] * 3)
  episodes.add(torch.tensor([1.0, 2.0, torch.nan]), no, torch.tensor([True, True, False]))
  episodes.add(torch.tensor([10.0, 20.0, 30.0]), torch.tensor([True, False, True]), yes)
  assert episodes.take().tolist() == [11 + 30, 2 + 1, 2]
  episodes.add(torch.tensor([0.0, 5.0, 0.0]), torch.tensor([False, True, False]), yes)
  assert episodes.take().tolist() == [27, 3, 1]
  assert episodes.take().tolist() == [0, 0, 0]


def test_means_weigh_only_what_is_valid():
  means = Means(CPU)
  means.add({"a": torch.tensor([1.0, torch.nan]), "b": torch.ones(2)}, torch.tensor([True, False]))
  means.add({"a": torch.tensor([3.0, 5.0]), "b": torch.ones(2)}, torch.tensor([True, True]))
  assert means.names == ["a", "b"]
  assert means.take().tolist() == [3, 9, 3]


@pytest.mark.parametrize(("horizon", "minibatches", "block"), [(16, 2, 1), (6, 4, 2), (3, 5, 5)])
def test_minibatches_deal_every_sample_out_once(horizon, minibatches, block):
  shuffle = Shuffle(horizon, minibatches, block, Random(0, 8))
  first, second = shuffle.draw(), shuffle.draw()
  assert first.shape == (minibatches, horizon * block * 8 // minibatches)
  assert first.flatten().sort().values.tolist() == list(range(horizon * block * 8))
  assert not torch.equal(first, second)
  blocks = first % (block * 8) // block
  share = horizon * block // minibatches
  assert all(row.bincount().tolist() == [share] * 8 for row in blocks)


def test_ranks_draw_the_same_minibatches():
  """Rank 1 of 2 holds the environments 4 ... 7; its rows count through its own storage."""
  whole = Shuffle(6, 4, 2, Random(0, 4)).draw()
  t, env = whole // 8, whole % 8
  for rank in range(2):
    part = Shuffle(6, 4, 2, Random(0, 2, 2 * rank)).draw()
    mine = env // 4 == rank
    assert torch.equal(part, (t * 4 + env % 4)[mine].view(4, -1))


def test_every_order_is_equally_likely():
  shuffle = Shuffle(3, 1, 1, Random(0, 6000))
  order = (shuffle.draw().view(6000, 3) // 6000).tolist()
  counts = torch.tensor(
    [order.count(p) for p in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])]
  )
  assert float(((counts - 1000) ** 2 / 1000).sum()) < 20.5  # chi-square, 5 degrees of freedom, 1 in 1000
