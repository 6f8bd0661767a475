"""Proximal policy optimisation (PPO; Schulman et al. 2017, arXiv 1707.06347).

    repeat:
      in N environments, for t = 0 ... T - 1: draw a_t from pi(. | s_t); observe r_t and s_t+1
      delta_t = r_t + gamma V(s_t+1) - V(s_t), A_t = delta_t + gamma lambda A_t+1, R_t = A_t + V(s_t)
      standardise A; pi_old = pi
      for each epoch, for each of M random minibatches:
        rho = pi(a | s) / pi_old(a | s)
        L = -min(rho A, clip(rho, 1 - eps, 1 + eps) A) + c_V (V(s) - R)^2 - c_H H(pi(. | s))
        take a step of Adam on the mean of L, by the weights of pi and V

Where another policy than pi has acted, V-trace replaces the advantages; see `overlap`.
"""

import logging
import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, cast

import torch
from tensordict import TensorDictBase
from torch import Tensor

from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.usage import total_memory
from gpurobot.learn.agent import Agent, Spaces, actor_critic
from gpurobot.learn.algorithm import Algorithm, epoch_words, network_words, replayed
from gpurobot.learn.collector import RolloutCollector, RolloutSource
from gpurobot.learn.critic import ScalarHead, rescale
from gpurobot.learn.discriminator import reference_of
from gpurobot.learn.distribution import Gaussian
from gpurobot.learn.env import VecEnv
from gpurobot.learn.estimator import EstimatingInput
from gpurobot.learn.image_setup import check_images, check_rollout, rollout_words
from gpurobot.learn.learned_reward import Training
from gpurobot.learn.loss import SUMS, adapt, linear, loss_terms, rate_limits, rate_scale, total
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.normalize import Moments
from gpurobot.learn.optimizer import Optimizer
from gpurobot.learn.own_code import OwnLoss
from gpurobot.learn.reward import RewardScaler
from gpurobot.learn.reward_sum import RewardSum
from gpurobot.learn.rollout import MinibatchEpochs, make_sampler
from gpurobot.learn.saved_state import Parts, state_of
from gpurobot.learn.statistics import LossMeans, Means
from gpurobot.settings.algorithms import Bootstrap, PPOConfig, Recurrence, Schedule
from gpurobot.settings.config import ConfigError, TrainConfig

ADAM_BYTES = 4 * 4  # of a weight, its gradient and Adam's two moments
LOG = logging.getLogger(__name__)
MANY_WEIGHTS = 10**8  # more of them take long to draw
# Makes what fills the rollouts of an agent; the executor is the learner's.
MakeSource = Callable[[VecEnv, Agent[ActorCritic], TrainConfig, World, Executor], RolloutSource]


def check(config: TrainConfig, env: VecEnv, device: torch.device) -> None:
  """Raise ConfigError if settings contradict each other or do not fit the environment."""
  ppo = config.ppo
  _check_size(ppo, env, device)
  check_images("ppo", ppo, env)
  check_rollout(ppo, env, device)
  if ppo.amp.style_weight:
    reference_of(env, ppo.amp)
  if ppo.schedule is Schedule.adaptive and ppo.epochs * ppo.minibatches == 1:
    raise ConfigError(
      "ppo.schedule=adaptive needs a second epoch or minibatch to measure the KL divergence; with "
      "ppo.epochs=1 ppo.minibatches=1 write ppo.schedule=constant"
    )
  off = "ppo.mirror_coef=0" if ppo.mirror_coef else "ppo.mirror_augment=false"
  given = f"ppo.mirror_coef={ppo.mirror_coef:g}" if ppo.mirror_coef else "ppo.mirror_augment=true"
  if mirrors(ppo) and env.mirror is None:
    raise ConfigError(f"{given}: the task has no mirror; write {off}")
  if mirrors(ppo) and (env.choices or ppo.recurrent is not Recurrence.none):
    raise ConfigError(f"{given} needs continuous actions and a policy without recurrence; write {off}")


def mirrors(ppo: PPOConfig) -> bool:
  """Return whether the loss looks at the mirror images of samples."""
  return bool(ppo.mirror_coef or ppo.mirror_augment)


def _check_size(ppo: PPOConfig, env: VecEnv, device: torch.device) -> None:
  """Raise ConfigError if the network does not fit in the memory of the device, and warn of a large one."""
  sizes = [max(env.obs_dims.values()), *ppo.hidden]
  if ppo.recurrent is not Recurrence.none:
    sizes[1:1] = [ppo.recurrent_units] * 2  # its input, and its own state
  weights = sum(before * after for before, after in pairwise(sizes))
  needed, memory = ADAM_BYTES * weights, total_memory(device)
  if needed > memory:
    raise ConfigError(
      f"ppo.hidden={ppo.hidden}: to train this network takes {needed / 1e9:,.0f} GB or more, and "
      f"{device} has {memory / 1e9:.0f} GB: write fewer units"
    )
  if weights > MANY_WEIGHTS:
    warnings.warn(f"a network of {weights:,} weights: to build it may take minutes", stacklevel=2)


class PPO(Algorithm):
  """One rank's part of PPO."""

  def __init__(
    self, env: VecEnv, config: TrainConfig, world: World, source: MakeSource = RolloutCollector
  ) -> None:
    """Build the agent, the same on every rank, and reset the environments; `source` makes its rollouts.

    Raises ConfigError if the settings do not fit the environment or the device.
    """
    super().__init__(env, config, world, config.ppo.horizon)
    check(config, env, self.device)
    ppo, device = config.ppo, self.device
    self.ppo = ppo
    self.agent = actor_critic(Spaces.of(env), ppo, device)
    self.network: ActorCritic = self.agent.network
    self.observations = self.agent.observations
    self.scale, self.limits = rate_scale(ppo, config.num_envs), rate_limits(ppo, config.num_envs)
    self.optimizer = Optimizer(self.network, len(SUMS), ppo.lr * self.scale, ppo.max_grad_norm, world)
    self.own_loss = OwnLoss("ppo.loss", ppo.loss, device) if ppo.loss else None
    self.losses = LossMeans(SUMS, device)
    self.value_moments = Moments(1, device, self.network.dtype)
    self.rewards = RewardScaler(ppo, device, self.network.dtype)
    self.source = source(env, self.agent, config, world, self.executor)
    self.rollout, self.collector, self.clock = self.source.rollout, self.source.collector, self.source.clock
    self.reward_sum = RewardSum(Training(env, config, world, self.executor, self.rollout))
    self.measures = Means("the measures of an update", device)
    self.means = [self.measures, *([self.own_loss.means] if self.own_loss else []), *self.reward_sum.means]
    parts = self.collector.statistics.parts
    parts |= {"losses": self.losses} | {one.source: one for one in self.means}
    parts |= {one.name: one.losses for one in self.reward_sum.rewards}
    self.sampler = make_sampler(self.rollout, config, world)
    tape = replayed(ppo, env, env.num_envs * ppo.horizon // ppo.minibatches)
    self.epochs = MinibatchEpochs(self.sampler, self.optimizer, self.executor, self.clock, tape=tape)
    # Data between the pieces of an update: n, sum and sum of squares of the advantages [3]; weight,
    # divergence and skipped steps of an epoch [3]; weight of the entropy bonus [1].
    self._advantages = torch.zeros(3, dtype=torch.float64, device=device)
    self._divergence = torch.zeros(3, dtype=self.network.dtype, device=device)
    self._entropy_coef = torch.zeros(1, dtype=self.network.dtype, device=device)

  def describe(self) -> str:
    """Return one line about the environments, the network and the hyperparameters."""
    ppo, env = self.ppo, self.env
    minibatch = self.num_envs * ppo.horizon // ppo.minibatches
    return (
      f"{super().describe()}; {rollout_words(ppo, env)}"
      f"network {network_words(ppo, self.network.actor_input.width, env)} "
      f"{'shared' if self.network.shared else 'separate'}, {self.network.precision}; "
      f"{epoch_words(ppo, self.num_envs)}; learning rate {ppo.lr:g} x {self.scale:.3g} "
      f"({ppo.lr_scaling} of {minibatch} / {ppo.reference_minibatch}){self.source.describe()}"
    )

  def collect(self) -> None:
    """Fill the rollout with the current policy; moments and weights do not change."""
    self.source.collect()

  def update(self) -> None:
    """Train policy and critic on the rollout, then merge the moments."""
    with self.source.learning():
      # Rewards: the learned ones are added, then all are scaled.
      self.clock.begin("update/values")
      self.reward_sum.add(self.steps)
      if self.rewards.automatic:
        self.executor.run(self._measure)
        self.world.sum_(self.rewards.moments.pending)
        self.executor.run(self._rescale)

      # Advantages and returns, standardised over all ranks.
      self.executor.run(self._evaluate)
      moments = (*self.observations.moments.values(), self.value_moments)
      self.world.sum_all_([self._advantages, *(own.pending for own in moments)])
      self.executor.run(self._standardize)

      # Epochs of gradient steps on minibatches of the rollout.
      first, last = self.ppo.entropy_coef, self.ppo.entropy_coef_final
      self._entropy_coef.fill_(linear(first, last, self.ppo.entropy_steps, self.steps))
      for epoch in range(self.ppo.epochs):
        self._run_epoch(epoch)

      # Learned rewards: their networks, on the same rollout.
      self.reward_sum.train()
      self.executor.run(self._merge)
    self.iteration += 1
    self.clock.begin("other")

  def _run_epoch(self, epoch: int) -> None:
    """Take a gradient step on each minibatch, then adapt the learning rate to their divergence."""
    self._divergence.zero_()
    for index in self.epochs.draw():
      self.epochs.step(index, self._differentiate, self._step_optimizer)
      if (epoch, index) != (0, 0):  # the divergence of the first minibatch is 0
        self._divergence[:2] += self.optimizer.sums[:2]
      self._divergence[2] += self.optimizer.found_inf
    if self.ppo.schedule is Schedule.adaptive:
      self.executor.run(self._adapt)

  @torch.no_grad()
  def _measure(self) -> None:
    """Sum up the untransformed rewards of the rollout for their automatic scale."""
    self.rewards.accumulate(self.rollout.samples["reward"], self.rollout.samples["valid"])

  @torch.no_grad()
  def _rescale(self) -> None:
    """Merge the untransformed rewards of all ranks into the scale; the critic's values follow it."""
    self.value_moments.rescale(factor := self.rewards.merge())  # nothing with a two-hot critic
    if not isinstance(self.network.value, ScalarHead):
      rescale(factor, self.network.value)

  @torch.no_grad()
  def _evaluate(self) -> None:
    """Compute advantages, returns and the sums for their moments over all ranks."""
    rollout, samples, moments = self.rollout, self.rollout.samples, self.value_moments
    reward, value = self.rewards(samples["reward"]), moments.denormalize(samples["value"])
    last = self._value(rollout.last_obs, rollout.last_state, rollout.last_restart)
    decay = (self.ppo.gamma, self.ppo.gae_lambda)
    advantage, correction = rollout.advantages(reward, value, last, self._final_value(), decay)
    samples["advantage"].copy_(advantage)
    samples["return_"].copy_(moments.normalize(correction + value))
    samples["weight"].copy_(samples["valid"])
    weight = samples["weight"].flatten()
    moments.accumulate((correction + value).view(-1, 1), weight)
    x, w = advantage.flatten().to(torch.float64), weight.to(torch.float64)
    self._advantages.copy_(torch.stack([w.sum(), w @ x, w @ x.square()]))

  def _final_value(self) -> Tensor | None:
    """Return the values [slots, local_envs] of the final observations; None if they are not asked for."""
    if self.ppo.bootstrap is Bootstrap.next:
      return None
    rollout = self.rollout
    obs = {group: obs.flatten(0, 1) for group, obs in rollout.final_obs.items()}
    state = rollout.final_state.flatten(0, 1)
    value = self._value(obs, state, state.new_zeros(len(state), dtype=torch.bool))
    return value.view(rollout.final_state.shape[:2])

  def _value(self, obs: Mapping[str, Tensor], state: Tensor, restart: Tensor) -> Tensor:
    """Return the values [n] of raw observations [n, width], in the unit of the transformed reward."""
    value = self.network.evaluate(self.agent.batch(obs), state, restart.unsqueeze(0)).squeeze(0)
    return self.value_moments.denormalize(value)

  @torch.no_grad()
  def _standardize(self) -> None:
    """Give the advantages zero mean and unit variance over the valid samples of all ranks."""
    n, first, second = self._advantages
    n = n.clamp(min=1)
    mean = first / n
    variance = (second / n - mean.square()).clamp(min=0)
    advantage = self.rollout.samples["advantage"]
    advantage.copy_((advantage - mean) / (variance.sqrt() + 1e-8))
    self.rollout.weigh_advantages()
    self.measures.add_scalars(self._measures(variance))

  def _measures(self, variance: Tensor) -> dict[str, Tensor]:
    """Return measures of an update by name, scalars; variance: of the advantages."""
    # The returns minus the values are the advantages, so 1 - variance / spread is the explained variance.
    count, first, second = self.value_moments.pending
    spread = (second / count.clamp(min=1) - (first / count.clamp(min=1)).square()).clamp(min=0)
    return {
      "explained_variance": 1 - variance / spread,
      "value/mean": self.value_moments.denormalize(self.rollout.samples["value"]).mean(),
      "action/std": self.network.head.old(self.rollout.samples["policy"]).spread(),
      "obs/clipped": self.observations.clipped(self.rollout.samples["obs", "policy"]),
      **self._estimate_errors(),
      **self.source.measure(),
    }

  def _estimate_errors(self) -> dict[str, Tensor]:
    """Return the error of the estimates in the last step of the rollout, by block."""
    estimator, last = self.network.actor_input, self.rollout.samples["obs"][-1:]
    if not isinstance(estimator, EstimatingInput):
      return {}
    _, scale = self.observations.moments["critic"].unit
    return estimator.measure(last, scale if self.observations.enabled else torch.ones_like(scale))

  def _differentiate(self) -> None:
    """Compute the gradient on this rank's part of a minibatch."""
    batch, state = self.executor.compiled(self.rollout.minibatch)(self.epochs.rows)
    self.optimizer.clear()
    self.clock.begin("update/forward")
    objective, sums, own = self.executor.compiled(self._objective)(batch, state)
    if self.own_loss:
      self.own_loss.keep(own, batch["weight"])
    self.clock.begin("update/backward")
    objective.backward()
    self.optimizer.sums.copy_(sums)

  def _objective(self, batch: TensorDictBase, state: Tensor) -> tuple[Tensor, Tensor, Mapping[str, Tensor]]:
    """Return the loss of a minibatch [sequence, n], its sums, and its terms by name.

    state [n, state_width]: before the minibatch.
    """
    policy, value, _ = self.network(batch["obs"], state, batch["restart"])
    mirrored = None
    if mirrors(self.ppo) and self.env.mirror:
      obs = {"policy": self.observations.reflect(batch["obs", "policy"], *self.env.mirror["policy"])}
      image, _ = self.network.act(obs, state, batch["restart"])
      mirrored = cast("Gaussian", image).reflect(*self.env.mirror["action"])
    policies = (policy, self.network.head.old(batch["policy"]))
    terms, sums = loss_terms(policies, value, batch, self.ppo, self._entropy_coef, mirrored)
    if isinstance(self.network.actor_input, EstimatingInput):
      terms["estimate"] = self.network.actor_input.errors(batch["obs"]).square().mean(-1)
    own = self.own_loss(terms, policy, value, batch) if self.own_loss else terms
    return total(own, batch["weight"]), sums, own

  def _step_optimizer(self) -> None:
    """Take one optimiser step with the gradient of all ranks."""
    self.optimizer.step()
    self.network.head.project()
    self.losses.add(self.optimizer.sums, self.optimizer.norm)

  def _adapt(self) -> None:
    """Adapt the learning rate to the mean divergence over the epoch and all ranks."""
    weight, divergence, skipped = self._divergence
    rate = self.optimizer.rate
    adapted = adapt(rate, divergence / weight, self.ppo.kl_target, self.limits)
    # If a step was skipped, the policy has changed less, which is no reason for a higher rate.
    rate.copy_(torch.where(skipped > 0, adapted.minimum(rate), adapted))

  def _merge(self) -> None:
    """Merge the pending sums into the moments."""
    self.observations.merge()
    if isinstance(self.network.value, ScalarHead):
      old = [part.clone() for part in self.value_moments.unit]
      self.value_moments.merge()
      self.network.value.preserve(old, self.value_moments.unit)
    else:  # a two-hot critic needs no normalisation
      self.value_moments.forget()

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report as scalars on the device; every rank calls."""
    return (
      super().report()
      | self.losses.report()
      | self.reward_sum.report()
      | self.source.report()
      | {
        "learning_rate": self.optimizer.rate,
        "skipped_updates": self.optimizer.skipped,
        "reward_scale": self.rewards.scale,
      }
    )

  @property
  def policy_parts(self) -> Parts:
    """The unit of the values."""
    return {"value_moments": self.value_moments, "rewards": self.rewards}

  @property
  def parts(self) -> Parts:
    """What a checkpoint keeps of the training."""
    return {"optimizer": self.optimizer, "shuffle": self.sampler.random}

  def load_policy(self, state: Mapping[str, Any]) -> None:
    """Load the network and its moments from a `policy_dict` or `state_dict`."""
    super().load_policy({**state_of(self.policy_parts), **state})  # older checkpoints have no rewards
    if "value_moments" not in state:
      LOG.info("the critic is new: the policy was distilled, and has learnt no values")

  def state_dict(self) -> dict[str, Any]:
    """Return the complete training state of all ranks; every rank calls."""
    own = {"schedule": self.ppo.schedule.name, "learned_rewards": self.reward_sum.state_dict()}
    return super().state_dict() | own | self.source.state_dict()

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue training with identical numbers; raise ValueError if the number of ranks differs."""
    _ = state["value_moments"]  # which a policy may lack, but no training
    super().load_state_dict(state)
    if self.ppo.schedule is Schedule.constant and state.get("schedule") == Schedule.adaptive:
      self.optimizer.rate.fill_(self.ppo.lr * self.scale)
    self.reward_sum.load_state_dict(state.get("learned_rewards", {}))  # older checkpoints: none
    self.source.load_state_dict(state)
