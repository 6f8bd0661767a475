"""Rollouts that a second thread collects while PPO learns from the last one.

The schedule is fixed: a rollout is one update old when PPO learns from it, and V-trace corrects for that
(Espeholt et al. 2018, arXiv 1802.01561). So the numbers do not depend on which of the two ends first.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.device import threads
from gpurobot.device.background import Background
from gpurobot.device.clock import OverlappedClock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.graph import WARM_UPS
from gpurobot.learn.agent import Agent, Spaces, actor_critic
from gpurobot.learn.algorithm import counted
from gpurobot.learn.collector import RolloutCollector, RolloutSource
from gpurobot.learn.env import STYLE, VecEnv
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.rollout import Rollout
from gpurobot.settings.config import ConfigError, TrainConfig, sequence_length


class OverlappedRollouts(RolloutSource):
  """Rollouts of an agent of its own in another thread, and maybe on another device.

  It acts with the weights and moments from before the update that goes on. An iteration begins and ends with
  the thread at rest: log and checkpoints find nothing half done.
  """

  def __init__(
    self, env: VecEnv, agent: Agent[ActorCritic], config: TrainConfig, world: World, executor: Executor
  ) -> None:
    """Build the acting agent and reset the environments; agent, executor: the learner's.

    Raises ConfigError if no thread is left to learn.
    """
    self._agent, self._executor, self._world, device = agent, executor, world, agent.device
    self._simulating, self._learning = shared_threads(config, env.device, device)
    self._other_device = device.type != env.device.type
    acting = actor_critic(Spaces.of(env), config.ppo, env.device)
    with threads.use(self._simulating):
      own = Executor(config, env.device, world.gather)
      self.acting = RolloutCollector(env, acting, config, world, own, self._other_device)
    self.collector = self.acting.collector
    self.clock = OverlappedClock(device, self.collector.clock)
    self.rollout = Rollout(env, agent.network, config.ppo.horizon, sequence_length(config.ppo), device)
    if config.ppo.amp.style_weight:
      self.rollout.keep_style(self.collector.obs[STYLE].shape[1])
    self._ratio = self.rollout.ratio = torch.ones(
      self.rollout.shape, dtype=agent.network.dtype, device=device
    )
    self._background = Background(env.device, self._simulating)
    self._age = 0  # updates between the policy that acted and the one that learns
    self._updates = 0  # of this process
    self._waits = False  # a rollout; the collector's mark is the state before it was collected

  def describe(self) -> str:
    """Return the threads that simulate."""
    simulating = f"{counted(self._simulating, 'thread')} of {self.collector.env.device.type}"
    return f"; simulates meanwhile, on {simulating}"

  def collect(self) -> None:
    """Take over the rollout that was collected during the last update; the acting agent learns from it."""
    self.clock.begin("rollout")
    self._age = int(self._waits)
    if not self._waits:
      self.acting.agent.follow(self._agent)
      self._collect_now()
    self.rollout.take(self.acting.rollout)
    self._agent.observations.take(self.acting.agent.observations)
    self.acting.agent.follow(self._agent)
    if self._other_device:
      torch.cuda.current_stream(self._agent.device).synchronize()  # the rollout is about to be overwritten
    self.collector.mark()
    self._waits = True
    self.clock.begin("other")

  def _collect_now(self) -> None:
    """Collect a rollout in the thread, and wait for it."""
    with self._background.running(self.acting.collect):
      pass

  @contextlib.contextmanager
  def learning(self) -> Iterator[None]:
    """Collect the next rollout while PPO learns from this one."""
    warm = not self._executor.prepares or self._updates > WARM_UPS
    with self._background.running(self.acting.collect, warm), threads.use(self._learning):
      self.clock.begin("update/values")
      self._executor.run_parts(self._reevaluate)
      yield
      self.clock.begin("wait")
    self._updates += 1

  @torch.no_grad()
  def _reevaluate(self) -> None:
    """Replace the acting agent's outputs by the present network's."""
    network = self._agent.network
    network.head.remember()
    for index, part in enumerate(self.rollout.parts):
      state = self.rollout.states[index]
      policy, value, _ = self._executor.compiled(network)(part["obs"], state, part["restart"])
      log_prob = policy.log_prob(part["action"])
      # A step that is not valid has no weight, and 0 * nan would spread.
      ratio = torch.where(part["valid"], (log_prob - part["log_prob"]).exp(), 1)
      self._ratio[index * len(ratio) : (index + 1) * len(ratio)].copy_(ratio)
      for name, new in (("policy", policy.parameters), ("log_prob", log_prob), ("value", value.value)):
        part[name].copy_(new)

  def measure(self) -> dict[str, Tensor]:
    """Return the divergence of the policy that acted from the present one.

    The estimate is the mean of ratio - 1 - log(ratio) over the samples; no term is negative.
    """
    count = self.rollout.samples["valid"].sum().clamp(min=1)
    return {"behaviour/kl": (self._ratio - 1 - self._ratio.log()).sum() / count}

  def report(self) -> dict[str, Tensor]:
    """Return the age of the policy that acted."""
    return {"behaviour/age": torch.full((1,), float(self._age), device=self._agent.device)}

  def state_dict(self) -> dict[str, Any]:
    """Return the acting agent if its rollout waits."""
    return {"acting": self.acting.agent.state_dict()} if self._waits else {}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Collect the rollout that waited once more."""
    self.acting.agent.observations.forget()
    self._waits = "acting" in state
    if self._waits:
      self.acting.agent.load_state_dict(state["acting"])
      self.collector.mark()
      self._collect_now()
      # The saved statistics have the rollout's already.
      self.collector.statistics.load_state_dict(state["ranks"][self._world.rank])


def shared_threads(config: TrainConfig, sim_device: torch.device, device: torch.device) -> tuple[int, int]:
  """Return how many of torch's CPU threads simulate, and how many learn.

  They are the same threads unless both go on at once on the CPU. Raises ConfigError if none is left to learn.
  """
  total = torch.get_num_threads()
  if not config.overlap or "cuda" in (sim_device.type, device.type):
    return config.sim_threads or total, total
  simulating = config.sim_threads or max(1, total // 2)
  if simulating >= total > 1:
    raise ConfigError(f"sim_threads={simulating} leaves none of {total} threads to learn; write fewer")
  return simulating, max(1, total - simulating)
