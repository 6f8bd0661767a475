"""Collectors of samples: they step the environments and store what happens."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from gpurobot.device import threads
from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.graph import Piece
from gpurobot.device.tape import Tape
from gpurobot.device.transfer import cloned
from gpurobot.learn.agent import Agent
from gpurobot.learn.critic import ValuePrediction
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.encoder import RandomShift
from gpurobot.learn.env import STYLE, VecEnv, images_of
from gpurobot.learn.finite import FiniteCheck
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import Rollout
from gpurobot.learn.statistics import Means, Statistics
from gpurobot.settings.config import TrainConfig, sequence_length

# Returns the actions [local_envs, ...] of one step, and the recurrent state [local_envs, state_width] after
# it. Its arguments: the sample of the step, with the observations filled in, to which it writes the policy's
# outputs; the state [local_envs, state_width] before the step; restart [local_envs] bool: an episode starts.
Act = Callable[[dict[str, Any], Tensor, Tensor], tuple[Tensor, Tensor]]


class Storage(Protocol):
  """Memory for the samples of a collection: a rollout or a replay buffer."""

  @property
  def steps(self) -> Iterable[dict[str, Any]]:
    """The samples of the steps to take: tensors [local_envs, ...] by name, to write to."""

  def keep_state(self, t: int, state: Tensor) -> None:
    """Store the recurrent state [local_envs, state_width] before step t, if it is needed."""

  def keep_final(self, final_obs: TensorDictBase, state: Tensor, truncated: Tensor) -> None:
    """Store final groups and images [local_envs, ...] and the state before them where `truncated`."""


class Collector:
  """Collector of one rank: it steps the environments and stores the samples.

  Moments and weights do not change meanwhile. All persistent tensors are written in place.
  """

  def __init__(
    self,
    env: VecEnv,
    agent: Agent[Any],
    storage: Storage,
    config: TrainConfig,
    world: World,
    executor: Executor,
  ) -> None:
    """Reset the environments."""
    self.env, self.storage, self.observations = env, storage, agent.observations
    self.clock = Clock(env.device)
    env.begin_part = self.clock.begin
    self.random = Random(config.seed, env.num_envs, world.rank * env.num_envs, env.device)
    self.statistics = Statistics(env.num_envs, env.device)
    self.threads = torch.get_num_threads()  # for large operations
    self._executor, self._compiled = executor, executor.compiled
    self.taped = executor.taped(self._step, env=env, agent=agent)  # on a CPU a `Tape`
    self.check = FiniteCheck(env, world.rank * env.num_envs)
    # The next observations [local_envs, ...], whether they were finite [local_envs], the recurrent state,
    # and whether an episode starts [local_envs].
    self.obs: TensorDictBase = env.reset().clone()
    self.finite = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    self._show(self.obs)
    self.state = agent.start(env.num_envs)
    self.restart = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    self._marked: dict[str, Any] | None = None  # the `start` of a `mark`

  def run(self, piece: Piece) -> None:
    """Run a piece that calls `collect`, on the number of threads worth using for its operations."""
    self.clock.begin("rollout")
    with threads.use(threads.enough(self.env.num_envs)):
      self._executor.run_parts(piece)

  @torch.no_grad()
  def collect(self, act: Act, *, tape: bool = False) -> None:
    """Take the steps of the storage, with actions that `act` chooses.

    With `tape` a step is replayed on a CPU, see `Tape`; then `act` is the same in every call.
    """
    step = self.taped if tape else self._step
    if isinstance(step, Tape):
      step.refresh()
    for t, sample in enumerate(self.storage.steps):
      self.storage.keep_state(t, self.state)
      step(act, sample)
    self.statistics.add_obs(self.obs["policy"])

  def _step(self, act: Act, sample: dict[str, Any]) -> None:
    """Take a step and store what happens in its sample."""
    self.clock.begin("policy")
    self._compiled(self.observations.write)(self.obs, sample["obs"])
    action, state = act(sample, self.state, self.restart)
    self.clock.begin("task")
    step = self._compiled(self.env.step)(action)
    self.clock.begin("storage")
    self._compiled(self._keep)(step, state, sample)

  def _show(self, obs: Mapping[str, Tensor]) -> None:
    """Show the policy new groups and images [local_envs, ...], with 0 for numbers that are not finite."""
    self.finite.copy_(self.check.rows(obs))
    self.check.note(obs, self.finite)
    for group, shown in self.obs.items():
      shown.copy_(obs[group].nan_to_num(0.0, 0.0, 0.0))

  def _keep(self, step: TensorDictBase, state: Tensor, sample: Mapping[str, Tensor]) -> None:
    """Store the results of a step [local_envs, ...] and the state [local_envs, state_width] after it."""
    final = self.check.rows(step["final_obs"])
    valid = self.check.transition(step["valid"], self.finite, final, step["reward"].isfinite())
    flags = {"terminated": step["terminated"], "truncated": step["truncated"] & valid, "valid": valid}
    self.storage.keep_final(step["final_obs"], state, flags["truncated"])
    self.observations.accumulate(self.obs, valid)
    self.statistics.add_step(step, valid)
    sample["restart"].copy_(self.restart)
    sample["reward"].copy_(step["reward"].where(valid, 0))
    if STYLE in sample:  # before and after the step, in one episode
      pair = torch.stack([self.obs[STYLE], step["final_obs", STYLE]], 1)
      sample[STYLE].copy_(pair.where(valid.view(-1, 1, 1), 0))
    for name, flag in flags.items():
      sample[name].copy_(flag)
    self._show(step["obs"])
    self.state.copy_(state)
    self.restart.copy_(step["terminated"] | step["truncated"] | ~valid)

  def report(self, world: World, *measures: Means) -> dict[str, Tensor]:
    """Return the statistics and `measures` since the last report as scalars over all ranks; all call.

    "nonfinite_source" is the `FiniteCheck.source` of one of the ranks.
    """
    counters = self.env.counters() | {"nonfinite_samples": self.check.count}
    source = world.max_(self.check.source)
    return self.statistics.report(world, counters, measures) | {"nonfinite_source": source}

  def start(self) -> dict[str, Any]:
    """Return this rank's environments and random numbers, with which a resumed training starts.

    They are the present ones, or the ones of the last `mark` until a state is loaded.
    """
    if self._marked is not None:
      return self._marked
    return {"environments": self.state_dict(), "random": self.random.state_dict()}

  def mark(self) -> None:
    """Let checkpoints go on from the present state."""
    self._marked = None
    self._marked = cloned(self.start())

  def state_dict(self) -> dict[str, Any]:
    """Return this rank's part of the state; `random` is left out, as it is the same on every rank."""
    return {
      "env": self.env.state_dict(),
      "obs": self.obs,
      "finite": self.finite,
      "state": self.state,
      "restart": self.restart,
      "episodes": self.statistics.episodes.running,
      "whole_episodes": self.statistics.episodes.whole,
      "nonfinite_samples": self.check.count,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state."""
    self._marked = None
    self.env.load_state_dict(state["env"])
    self.obs.update_(TensorDict(state["obs"], batch_size=[self.env.num_envs]))
    self.finite.copy_(state.get("finite", torch.ones_like(self.finite)))  # older checkpoints: all were
    self.state.copy_(state["state"])
    self.restart.copy_(state["restart"])
    episodes = self.statistics.episodes
    episodes.running.copy_(state["episodes"])
    episodes.whole.copy_(state.get("whole_episodes", torch.ones_like(episodes.whole)))
    self.check.count.copy_(state.get("nonfinite_samples", torch.zeros_like(self.check.count)))


class RolloutSource:
  """Source of the rollouts that PPO learns from."""

  rollout: Rollout  # to learn from
  collector: Collector  # steps the environments
  clock: Clock  # timer of the learner

  def collect(self) -> None:
    """Fill the rollout with samples of a policy; moments and weights do not change."""
    raise NotImplementedError

  def learning(self) -> AbstractContextManager[None]:
    """Return a context in which PPO learns from the rollout."""
    return contextlib.nullcontext()

  def measure(self) -> dict[str, Tensor]:
    """Return measures of the rollout by name, scalars."""
    return {}

  def report(self) -> dict[str, Tensor]:
    """Return further scalars for the log by name."""
    return {}

  def describe(self) -> str:
    """Return the end of the line about the training."""
    return ""

  def state_dict(self) -> dict[str, Any]:
    """Return further content for a checkpoint, beside `Collector.start`."""
    return {}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a learner's saved state, after the learner has loaded it."""


class RolloutCollector(RolloutSource):
  """Collector of rollouts: stores observations, actions, log-probabilities and values of an agent."""

  def __init__(
    self,
    env: VecEnv,
    agent: Agent[ActorCritic],
    config: TrainConfig,
    world: World,
    executor: Executor,
    pinned: bool = False,
  ) -> None:
    """Allocate the rollout, `pinned` if a GPU copies from it, and reset the environments."""
    self.agent, self.executor = agent, executor
    ppo = config.ppo
    self.rollout = Rollout(env, agent.network, ppo.horizon, sequence_length(ppo), env.device, pinned)
    self.shift = RandomShift(images_of(env), ppo.random_shift)
    self.collector = Collector(env, agent, self.rollout, config, world, executor)
    self.clock = self.collector.clock
    if ppo.amp.style_weight:
      self.rollout.keep_style(self.collector.obs[STYLE].shape[1])

  def collect(self) -> None:
    """Fill the rollout with the agent's policy; moments and weights do not change."""
    self.collector.run(self._collect)

  def _collect(self) -> None:
    self.agent.network.head.remember()
    self.rollout.restart()
    self.collector.collect(self._act, tape=True)
    self.rollout.keep_last(self.collector.obs, self.collector.state, self.collector.restart)

  def _act(self, sample: dict[str, Any], state: Tensor, restart: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions [local_envs, ...] and the next state, see `collector.Act`.

    The images are shifted before the policy sees them: learning from others than it has acted on would change
    the ratio of its probabilities.
    """
    self.executor.compiled(self.shift)(sample["obs"], self.collector.random.uniform)
    obs = {group: x.unsqueeze(0) for group, x in sample["obs"].items()}
    with threads.use(self.collector.threads):
      policy, value, state = self.executor.compiled(self.agent.network)(obs, state, restart.unsqueeze(0))
    return self.executor.compiled(self._draw)(policy, value, sample), state

  def _draw(self, policy: Distribution, value: ValuePrediction, sample: Mapping[str, Tensor]) -> Tensor:
    """Sample the policy, store the sample and the network's outputs; return the actions [local_envs, ...]."""
    random = self.collector.random
    random.advance()
    drawn = policy.sample(random)
    sample["action"].copy_(drawn.squeeze(0))
    sample["policy"].copy_(policy.parameters.squeeze(0))
    sample["log_prob"].copy_(policy.log_prob(drawn).squeeze(0))
    sample["value"].copy_(value.value.squeeze(0))
    return policy.action(drawn).squeeze(0)
