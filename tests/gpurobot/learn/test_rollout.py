import pytest
import torch
from tensordict import TensorDict

from gpurobot.learn.network import ActorCritic
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import MinibatchSampler, Rollout, gae, td_errors, vtrace
from gpurobot.settings.algorithms import PPOConfig, Precision, Recurrence
from tests.gpurobot.toy import Config, Task


def rollout(horizon: int, num_envs: int, limit: int = 1000, sequence: int = 1) -> Rollout:
  env = Task(Config(episode_steps=limit), num_envs, random=Random(0, num_envs))
  ppo = PPOConfig(
    hidden=[4],
    recurrent=Recurrence.none if sequence == 1 else Recurrence.gru,
    recurrent_units=2,
    precision=Precision.float64,
  )
  network = ActorCritic(env.obs_dims, env.num_actions, env.choices, ppo)
  return Rollout(env, network, horizon, sequence, env.device)


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
  advantage, correction = r.advantages(r.samples["reward"], value, last, final, (0.5, 0.5))
  assert correction is advantage
  assert advantage.T.tolist() == [
    [1.265625, 1.0625, -3.75, 5.0],
    [0.5, -2.0, -3.75, 5.0],  # delta = 2 + 0 - 4
    [1.25, 1.0, -3.75, 5.0],  # delta = 2 + 0.5 * 6 - 4
    [1.0, 0.0, -3.75, 5.0],
  ]
  following, _ = r.advantages(r.samples["reward"], value, last, None, (0.5, 0.5))
  assert following[:, 2].tolist() == [1.5, 2.0, -3.75, 5.0]  # delta = 2 + 0.5 * 8 - 4
  assert following[:, [0, 1, 3]].equal(advantage[:, [0, 1, 3]])


def test_a_reward_that_is_not_finite_stays_where_it_is():
  r = rollout(2, 1)
  r.samples["reward"][:, 0] = torch.tensor([1.0, torch.nan])
  r.samples["valid"][0] = True
  value = torch.ones(2, 1, dtype=torch.float64)
  assert r.advantages(r.samples["reward"], value, value[0], value[:1], (0.5, 0.5))[0].flatten().tolist() == [
    0.5,
    0.0,
  ]


def test_every_time_limit_of_a_rollout_keeps_its_own_observation_and_state():
  r = rollout(6, 2, limit=2, sequence=3)
  assert len(r.final_obs["policy"]) == 3
  truncations = torch.tensor([[1, 0], [0, 1], [1, 0], [0, 0], [1, 1], [0, 0]], dtype=torch.bool)
  for _ in range(2):  # the second iteration starts afresh
    r.restart()
    for t, truncated in enumerate(truncations):
      obs = {group: torch.full((2, width), float(t)) for group, width in Task.obs_dims.items()}
      r.keep_final(TensorDict(obs, [2]), torch.full((2, 4), 10.0 * t, dtype=torch.float64), truncated)
    assert r.final_obs["policy"][:, 0, 0].tolist() == [0, 2, 4]
    assert r.final_obs["critic"][:2, 1, 2].tolist() == [1, 4]
    assert r.final_state[:, 0, 3].tolist() == [0, 20, 40]
  r.samples["truncated"].copy_(truncations)
  r.samples["valid"][:] = True
  final = torch.tensor([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]], dtype=torch.float64)
  zeros = torch.zeros(6, 2, dtype=torch.float64)
  advantage, _ = r.advantages(r.samples["reward"], zeros, zeros[0], final, (1.0, 0.0))
  assert advantage.T.tolist() == [[10, 0, 30, 0, 50, 0], [0, 20, 0, 0, 40, 0]]


@pytest.mark.parametrize("sequence", [1, 2, 3, 6])
def test_minibatches_keep_sequences_whole(sequence):
  r = rollout(6, 4, sequence=sequence)
  r.samples["value"].copy_(torch.arange(6)[:, None] * 10 + torch.arange(4))  # step and environment
  for t in range(6):
    r.keep_state(t, torch.full_like(r.states[0], 10 * t) + torch.arange(4.0)[:, None])
  rows = torch.randperm(6 // sequence * 4)
  batch, states = r.minibatch(rows)
  assert batch["value"].shape == (sequence, len(rows))
  first = batch["value"][0]
  assert (first // 10 % sequence == 0).all()
  assert sorted(first.tolist()) == [10 * t + e for t in range(0, 6, sequence) for e in range(4)]
  torch.testing.assert_close(
    batch["value"] - first, 10.0 * torch.arange(sequence)[:, None].expand_as(batch["value"]).double()
  )
  assert torch.equal(states, first[:, None].expand_as(states))


def draw(shuffle: MinibatchSampler) -> torch.Tensor:
  shuffle.draw()
  return shuffle.minibatches.clone()


@pytest.mark.parametrize(("horizon", "minibatches", "block"), [(16, 2, 1), (6, 4, 2), (3, 5, 5)])
def test_minibatches_deal_every_sample_out_once(horizon, minibatches, block):
  shuffle = MinibatchSampler(horizon, minibatches, block, Random(0, 8))
  first, second = draw(shuffle), draw(shuffle)
  assert first.shape == (minibatches, horizon * block * 8 // minibatches)
  assert first.flatten().sort().values.tolist() == list(range(horizon * block * 8))
  assert not torch.equal(first, second)
  blocks = first % (block * 8) // block
  share = horizon * block // minibatches
  assert all(row.bincount().tolist() == [share] * 8 for row in blocks)


def test_ranks_draw_the_same_minibatches():
  """Rank 1 of 2 holds the environments 4 ... 7; its rows count through its own storage."""
  whole = draw(MinibatchSampler(6, 4, 2, Random(0, 4)))
  t, env = whole // 8, whole % 8
  for rank in range(2):
    part = draw(MinibatchSampler(6, 4, 2, Random(0, 2, 2 * rank)))
    mine = env // 4 == rank
    assert torch.equal(part, (t * 4 + env % 4)[mine].view(4, -1))


def test_every_order_is_equally_likely():
  shuffle = MinibatchSampler(3, 1, 1, Random(0, 6000))
  order = (draw(shuffle).view(6000, 3) // 6000).tolist()
  counts = torch.tensor(
    [order.count(p) for p in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])]
  )
  assert float(((counts - 1000) ** 2 / 1000).sum()) < 20.5  # chi-square, 5 degrees of freedom, 1 in 1000


def played(steps: int, envs: int) -> tuple[list[torch.Tensor], torch.Tensor]:
  """Return the arguments of `td_errors` for episodes of random lengths, and ratios around 1."""
  draw = torch.Generator().manual_seed(0)
  reward, value, after, ratio = torch.randn(4, steps, envs, dtype=torch.float64, generator=draw)
  done, invalid = torch.rand(2, steps, envs, generator=draw) < 0.2
  return [reward, value, torch.where(done, 0, after), done, ~invalid], ratio.exp()


def test_vtrace_is_gae_where_the_policy_that_acted_is_the_present_one():
  arguments, ratio = played(20, 30)
  delta, keep = td_errors(*arguments, (0.97, 0.9))
  advantage, correction = vtrace(delta, keep, torch.ones_like(ratio))
  assert torch.equal(advantage, gae(delta, keep))
  assert torch.equal(correction, advantage)


def test_vtrace_is_the_sum_of_the_paper():
  """v_s = V_s + sum over t of gamma^(t - s) (c_s ... c_(t - 1)) rho_t (r_t + gamma V_(t + 1) - V_t)."""
  arguments, ratio = played(12, 7)
  reward, value, after, done, valid = arguments
  gamma, lambda_ = 0.97, 0.9
  advantage, correction = vtrace(*td_errors(*arguments, (gamma, lambda_)), ratio)
  rho = ratio.clamp(max=1)
  expected = torch.zeros_like(value)
  for env in range(7):
    for s in range(12):
      trace = 1.0
      for t in range(s, 12):
        if not valid[t, env]:
          break
        expected[s, env] += trace * rho[t, env] * (reward + gamma * after - value)[t, env]
        if done[t, env]:
          break
        trace = trace * gamma * lambda_ * float(rho[t, env])
  torch.testing.assert_close(correction, expected, rtol=1e-12, atol=1e-12)
  torch.testing.assert_close(rho * advantage, correction, rtol=1e-12, atol=1e-12)


def test_a_rollout_is_taken_over_whole():
  one, other = rollout(6, 4, limit=2, sequence=3), rollout(6, 4, limit=2, sequence=3)
  draw = torch.Generator().manual_seed(0)
  filled = [
    other.states,
    other.final_state,
    other.last_state,
    *other.final_obs.values(),
    *other.last_obs.values(),
  ]
  filled += [other.samples["obs", group] for group in other.last_obs]
  filled += [other.samples[name] for name in ("action", "log_prob", "reward")]
  for tensor in filled:
    tensor.copy_(torch.randn(tensor.shape, generator=draw))
  for tensor in (
    other.last_restart,
    *(other.samples[name] for name in ("restart", "terminated", "truncated")),
  ):
    tensor.copy_(torch.rand(tensor.shape, generator=draw) < 0.5)
  other.samples["valid"].fill_(True)
  one.take(other)
  for name, tensor in other.samples.items(include_nested=True, leaves_only=True):
    assert torch.equal(one.samples[name], tensor), name
  for name in ("states", "final_state", "last_state", "last_restart"):
    assert torch.equal(getattr(one, name), getattr(other, name)), name
  for name in ("final_obs", "last_obs"):
    assert all(torch.equal(getattr(one, name)[group], x) for group, x in getattr(other, name).items()), name
