import pytest
import torch

from gpurobot.learn.network import Actor
from gpurobot.learn.normalize import ObservationNormalizer
from gpurobot.learn.off_policy.batch import Batch
from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import Draw, Transitions
from gpurobot.settings.algorithms import Precision, SACConfig
from tests.gpurobot import toy

N = 4


@pytest.mark.parametrize("batches", [1, 3])
def test_batches_come_in_turn(batches):
  env = toy.Task(toy.Config(), 8, random=Random(0, 8))
  actor = Actor(env.obs_dims, env.num_actions, SACConfig(hidden=[4]), Precision.float64)
  batch = Batch(env, actor, ("test",), (batches, N))
  plain = ObservationNormalizer(env.obs_dims, torch.device("cpu"), (torch.float64, torch.float64), False)
  count = torch.arange(float(batches * N))

  def wide(width: int, first: float) -> torch.Tensor:
    return (first + count)[:, None].expand(-1, width)

  before, after = ({group: wide(width, x) for group, width in env.obs_dims.items()} for x in (0.0, 0.5))
  drawn = Transitions(before, wide(env.num_actions, 100), 200 + count, after, 300 + count, count % 2)
  draw = Draw(count.long(), count.long(), 400 + count.long(), torch.full_like(count, 2.0))
  for _ in range(2):  # the first of the next draw follows the last one
    batch.fill(draw, drawn, {"test": wide(env.num_actions, 500)}, plain)
    for rows in count.split(N):
      batch.advance()
      for group in env.obs_dims:
        assert torch.equal(batch.obs[group][:, 0], rows.double())
        assert torch.equal(batch.next_obs[group][:, 0], rows.double() + 0.5)
      assert torch.equal(batch.action[:, 0], rows.double() + 100)
      assert torch.equal(batch.noise["test"][:, 0], rows.double() + 500)
      found = torch.stack([batch.reward, batch.discount, batch.age, batch.weight, batch.importance])
      expected = [200 + rows, 300 + rows, 400 + rows, rows % 2, 2 * (rows % 2)]
      assert torch.equal(found, torch.stack(expected).double())
