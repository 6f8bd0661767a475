import torch

from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.learn.agent import Spaces, actor_critic
from gpurobot.learn.collector import Collector
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import Rollout
from gpurobot.settings.config import assign, defaults
from tests.gpurobot import toy

LOCAL_ENVS = 6


def make(**values) -> Collector:
  config = assign(defaults(toy), {"num_envs": LOCAL_ENVS, "ppo.reward_transform": "none"} | values)
  env = toy.Task(config.env, LOCAL_ENVS, random=Random(0, LOCAL_ENVS), training=False)
  world, agent = World(), actor_critic(Spaces.of(env), config.ppo, env.device)
  rollout = Rollout(env, agent.network, config.ppo.horizon, 1, env.device)
  return Collector(env, agent, rollout, config, world, Executor(config, env.device, world.gather))


def push(_sample, state, _restart):
  """Push every point along x, and count the steps in the network's state, if it has one."""
  return torch.tensor([[1.0, 0.0]]).expand(LOCAL_ENVS, 2), state + 1


def collect(collector: Collector) -> None:
  collector.storage.restart()
  collector.collect(push)


def test_a_rollout_holds_what_the_environments_showed_and_gave():
  collector = make(**{"env.force": 0.1, "env.episode_steps": 5})
  start = collector.obs["policy"].clone()
  collect(collector)
  samples = collector.storage.samples
  for t in range(5):  # the moments are 0 and 1 as yet
    torch.testing.assert_close(samples["obs", "policy"][t], start + torch.tensor([0.1 * t, 0.0]))
  reached = samples["obs", "policy"][:4] + torch.tensor([0.1, 0.0])
  torch.testing.assert_close(samples["reward"][:4], -reached.norm(dim=-1))
  assert samples["restart"].all(1).tolist() == [True, *[False] * 4, True, False, False]
  assert samples["truncated"].all(1).nonzero().flatten().tolist() == [4]


def test_the_networks_state_goes_on_and_moments_wait():
  collector = make(**{"ppo.recurrent": "gru", "ppo.recurrent_units": 3})
  collect(collector)
  assert collector.state.unique().tolist() == [8]
  moments = collector.observations.moments["policy"]
  assert (int(moments.count), int(moments.pending[0])) == (0, 8 * LOCAL_ENVS)
