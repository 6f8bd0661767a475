"""Collector of PPO's rollouts: stores observations, actions, log-probabilities and values."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from gpurobot.device import threads
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.learn.agent import Agent
from gpurobot.learn.collector import Collector
from gpurobot.learn.critic import ValuePrediction
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.encoder import RandomShift
from gpurobot.learn.env import STYLE, VecEnv, images_of
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.rollout import Rollout
from gpurobot.settings.config import TrainConfig, sequence_length


class RolloutCollector:
  """One rank's agent at work in the environments, with the rollout that it fills."""

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
