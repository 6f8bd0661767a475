"""PPO that learns from the last rollout while its environments fill the next one.

The schedule is fixed: a rollout is one update old when PPO learns from it, and V-trace corrects for that
(Espeholt et al. 2018, arXiv 1802.01561). So the numbers do not depend on which of the two ends first.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.device import threads
from gpurobot.device.background import Background
from gpurobot.device.clock import OverlappedClock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.graph import WARM_UPS
from gpurobot.learn.agent import Spaces, actor_critic
from gpurobot.learn.algorithm import counted
from gpurobot.learn.env import STYLE, VecEnv
from gpurobot.learn.ppo import PPO
from gpurobot.learn.rollout import Rollout
from gpurobot.learn.rollout_collector import RolloutCollector
from gpurobot.settings.config import ConfigError, TrainConfig, sequence_length


class OverlappedPPO(PPO):
  """One rank's part of PPO with rollouts from another thread, and maybe another device.

  There an agent of its own acts, with the weights and moments from before the update that goes on. An
  iteration begins and ends with the thread at rest: log and checkpoints find nothing half done.
  """

  def __init__(self, env: VecEnv, config: TrainConfig, world: World) -> None:
    """Build both agents, the same on every rank, and reset the environments.

    Raises ConfigError if the settings do not fit the environment or the device.
    """
    device = world.device(config.device) if config.sim_device else env.device
    self._simulating, self._learning = shared_threads(config, env.device, device)
    super().__init__(env, config, world)
    self.ratio = torch.ones(self.rollout.shape, dtype=self.network.dtype, device=device)
    self.rollout.ratio = self.ratio
    self._background = Background(env.device, self._simulating)
    self._age = 0  # updates between the policy that acted and the one that learns
    self._updates = 0  # of this process
    self._waits = False  # a rollout; the collector's mark is the state before it was collected

  def make_acting(self, config: TrainConfig) -> RolloutCollector:
    """Return what acts in the environments: an agent of its own on their device."""
    env, world = self.env, self.world
    agent = actor_critic(Spaces.of(env), config.ppo, env.device)
    executor = Executor(config, env.device, world.gather)
    with threads.use(self._simulating):
      return RolloutCollector(env, agent, config, world, executor, self.device.type != env.device.type)

  def make_rollout(self, config: TrainConfig) -> Rollout:
    """Return the rollout to learn from: a copy of the one that is filled, on the device that learns."""
    sequence = sequence_length(config.ppo)
    rollout = Rollout(self.env, self.network, config.ppo.horizon, sequence, self.device)
    if config.ppo.amp.style_weight:
      rollout.keep_style(self.acting.collector.obs[STYLE].shape[1])
    return rollout

  def make_clock(self) -> OverlappedClock:
    """Return a timer of the learning thread that also reports the acting thread."""
    return OverlappedClock(self.device, self.collector.clock)

  def describe(self) -> str:
    """Return one line about the environments, the network and the hyperparameters."""
    simulating = f"{counted(self._simulating, 'thread')} of {self.env.device.type}"
    return f"{super().describe()}; simulates meanwhile, on {simulating}"

  def collect(self) -> None:
    """Take over the rollout that was collected during the last update; the acting agent learns from it."""
    self.clock.begin("rollout")
    self._age = int(self._waits)
    if not self._waits:
      self.acting.agent.follow(self.agent)
      with self._background.running(self.acting.collect):
        pass
    self.rollout.take(self.acting.rollout)
    self.observations.take(self.acting.agent.observations)
    self.acting.agent.follow(self.agent)
    if self.device.type != self.env.device.type:
      torch.cuda.current_stream(self.device).synchronize()  # the rollout is about to be overwritten
    self.collector.mark()
    self._waits = True
    self.clock.begin("other")

  def update(self) -> None:
    """Train policy and critic on the rollout while the next one is collected, then merge the moments."""
    warm = not self.executor.prepares or self._updates > WARM_UPS
    with self._background.running(self.acting.collect, warm), threads.use(self._learning):
      self.clock.begin("update/values")
      self.executor.run_parts(self._reevaluate)
      super().update()
      self.clock.begin("wait")
    self._updates += 1
    self.clock.begin("other")

  @torch.no_grad()
  def _reevaluate(self) -> None:
    """Replace the acting agent's outputs by the present network's."""
    self.network.head.remember()
    for index, part in enumerate(self.rollout.parts):
      state = self.rollout.states[index]
      policy, value, _ = self.executor.compiled(self.network)(part["obs"], state, part["restart"])
      log_prob = policy.log_prob(part["action"])
      # No step hears of one that is not valid, and 0 * nan must not tell it otherwise.
      ratio = torch.where(part["valid"], (log_prob - part["log_prob"]).exp(), 1)
      self.ratio[index * len(ratio) : (index + 1) * len(ratio)].copy_(ratio)
      for name, new in (("policy", policy.parameters), ("log_prob", log_prob), ("value", value.value)):
        part[name].copy_(new)

  @torch.no_grad()
  def _standardize(self) -> None:
    """Standardise the advantages, and weigh them by V-trace's truncated ratio."""
    super()._standardize()
    self.rollout.samples["advantage"].mul_(self.ratio.clamp(max=1))

  def measure(self, variance: Tensor) -> dict[str, Tensor]:
    """Return measures of an update by name, scalars; variance: of the advantages.

    "behaviour/kl" is the divergence of the policy that acted from the present one, estimated from the samples
    of the former by the mean of ratio - 1 - log(ratio), whose terms are all positive.
    """
    count = self.rollout.samples["valid"].sum().clamp(min=1)
    divergence = (self.ratio - 1 - self.ratio.log()).sum() / count
    return super().measure(variance) | {"behaviour/kl": divergence}

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report as scalars on the device; every rank calls."""
    values = super().report()
    return {name: value.to(self.device) for name, value in values.items()} | {
      "behaviour/age": torch.full((1,), float(self._age), device=self.device)
    }

  def state_dict(self) -> dict[str, Any]:
    """Return the complete training state of all ranks; every rank calls."""
    acting = {"acting": self.acting.agent.state_dict()} if self._waits else {}
    return super().state_dict() | acting

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue training with identical numbers; raise ValueError if the number of ranks differs."""
    super().load_state_dict(state)
    self.acting.agent.observations.forget()
    self._waits = "acting" in state
    if self._waits:
      self.acting.agent.load_state_dict(state["acting"])
      self.collector.mark()
      with self._background.running(self.acting.collect):
        pass
      # The saved statistics have the rollout's already.
      self.collector.statistics.load_state_dict(state["ranks"][self.world.rank])


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
