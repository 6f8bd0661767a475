"""Off-policy actor-critic training from a replay buffer, in the form that thousands of environments need.

Large batches and few gradient steps per environment step (Seo et al. 2025, arXiv 2505.22642 and 2512.01996),
with two critics that predict the return, or a distribution of it.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gpurobot.device import threads
from gpurobot.device.distributed import World
from gpurobot.learn.agent import Spaces, actor
from gpurobot.learn.algorithm import Algorithm, counted, layer_words, replayed
from gpurobot.learn.collector import Collector
from gpurobot.learn.critic import rescale
from gpurobot.learn.distribution import Gaussian
from gpurobot.learn.encoder import RandomShift
from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.image_setup import image_words
from gpurobot.learn.loss import total
from gpurobot.learn.network import Actor, TwinCritic
from gpurobot.learn.off_policy.batch import Batch
from gpurobot.learn.off_policy.loss import CRITIC_SUMS, critic_loss, joint, target
from gpurobot.learn.off_policy.setup import check, greedy_envs, make_sampler, stored_obs
from gpurobot.learn.optimizer import Optimizer, PolicyAverage, target_network
from gpurobot.learn.own_code import OwnLoss
from gpurobot.learn.replay_buffer import Replay, replay_bytes
from gpurobot.learn.reward import RewardScaler
from gpurobot.learn.saved_state import Parts, load_state, state_of
from gpurobot.learn.statistics import LossMeans
from gpurobot.settings.config import TrainConfig, off_policy

MAX_GRAD_NORM = 1.0  # of critics, policy and temperature: PPO's default


class PolicyLoss(NamedTuple):
  """Loss of the policy on a batch of n transitions."""

  policy: Gaussian  # [n]
  value: Tensor  # of its actions [n]
  terms: dict[str, Tensor]  # by name [n]; their sum is minimised
  sums: Tensor  # [number of sums]
  other: Tensor | None = None  # another loss, a scalar, of weights that the policy does not have


class OffPolicy(Algorithm):
  """One rank's part of an off-policy algorithm.

  Subclasses say how it explores, what follows a transition, and what the policy minimises.
  """

  sums: tuple[str, ...]  # names of the sums of the policy's loss
  noises: tuple[str, ...]  # purposes of the normal numbers that a batch needs for each action

  def __init__(self, env: VecEnv, config: TrainConfig, world: World) -> None:
    """Build policy, critics and replay buffer, the same weights on every rank, and reset the environments.

    Raises ConfigError if the settings do not fit the environment or the device.
    """
    check(config, env)
    self.name, self.settings = config.algorithm, off_policy(config)
    settings = self.settings
    super().__init__(env, config, world, settings.horizon)
    self.agent = actor(Spaces.of(env), settings, env.device)
    self.network: Actor = self.agent.network
    self.observations, dtype = self.agent.observations, self.network.dtype
    self.critics = TwinCritic(env.obs_dims, env.num_actions, settings, dtype, images_of(env)).to(env.device)
    self.optimizers = {
      "critics": self.make_optimizer(self.critics, CRITIC_SUMS),
      "actor": self.make_optimizer(self.network, self.sums),
    }
    self._joint = functools.partial(joint, clipped=settings.clipped_double_q)
    self._critic_weights = [weight for weight in self.critics.parameters() if weight.requires_grad]
    self.targets, self._target_weights = target_network(self.critics)  # after the broadcast of the weights
    self.average = PolicyAverage(self.network, self.optimizers["actor"])
    self.own_loss = OwnLoss(f"{self.name}.loss", own, env.device) if (own := settings.loss) else None
    self.losses = (LossMeans(CRITIC_SUMS, env.device), LossMeans(self.sums, env.device))
    self.rewards = RewardScaler(settings, env.device, dtype)
    length = settings.buffer_size // config.num_envs
    self._stored = stored_obs(config, env)
    self.replay = Replay(env, settings.horizon, length, (dtype, self.network.input_dtype), self._stored)
    self.collector = Collector(env, self.agent, self.replay, config, world, self.executor)
    own_means = {"own_loss": self.own_loss.means} if self.own_loss else {}
    self.means = [*own_means.values()]
    self.collector.statistics.parts |= {"critics": self.losses[0], "policy": self.losses[1], **own_means}
    self.clock, self._greedy = self.collector.clock, greedy_envs(env, config, world)
    if self.settings.greedy_envs:
      self.collector.statistics.episodes.marked["greedy"] = self._greedy
    count = settings.batch_size // world.size
    self.sampler = make_sampler(env, self.replay, count, config, world)
    self._began = 0  # the iteration in which the replay buffer was empty
    self.shift = RandomShift(images_of(env), settings.random_shift)
    self.batch = Batch(env, self.network, self.noises, (self.sampler.batches, count))
    self._tape = replayed(settings, env, count)

  def make_optimizer(self, module: nn.Module, sums: tuple[str, ...]) -> Optimizer:
    """Return a new optimiser of a module's weights, with sums over samples by name."""
    return Optimizer(module, len(sums), self.settings.lr, MAX_GRAD_NORM, self.world)

  def explore(self, policy: Gaussian) -> Tensor:
    """Return the actions [local_envs, num_actions] of a step, with numbers of the collector's `random`."""
    raise NotImplementedError

  def next_action(self, policy: Gaussian) -> tuple[Tensor, Tensor]:
    """Return actions [n, num_actions] after a transition, and a bonus on their values [n]."""
    raise NotImplementedError

  def policy_loss(self) -> PolicyLoss:
    """Return the loss of the policy on the present batch."""
    raise NotImplementedError

  @property
  def buffer(self) -> Replay | None:
    """The replay buffer if checkpoints keep it."""
    return self.replay if self.settings.save_buffer else None

  @property
  def first_update(self) -> int:
    """Number of iterations that fill the empty replay buffer before the first that learns."""
    least = max(self.settings.learning_starts, self.settings.n_step + 1)
    return -(-least // self.settings.horizon) - 1

  def describe(self) -> str:
    """Return one line about the environments, the networks and the hyperparameters."""
    own, env = self.settings, self.env
    policy = layer_words(own, self.network.actor_input.width, own.hidden, env.num_actions)
    critic = layer_words(own, self.critics.input.width + env.num_actions, own.critic_hidden)
    held = self.replay.length * self.num_envs
    needed = replay_bytes(env, self.replay.length, self.network.dtype, self._stored)
    return (
      f"{super().describe()}; "
      f"{self.name.upper()}, {image_words(own, env)}policy {policy}, twin critics {critic}, "
      f"{self.network.precision}; {counted(own.updates_per_step, 'gradient step')} of {own.batch_size} "
      "transitions after each step; "
      f"replay buffer of {held:,} transitions, {needed / 1e9:.2g} GB per rank, "
      f"{'in' if own.save_buffer else 'not in'} the checkpoints"
    )

  def collect(self) -> None:
    """Take steps with the current policy and store them in the replay buffer."""
    self.collector.run(self._collect)
    self.replay.written += self.settings.horizon

  def _collect(self) -> None:
    self.collector.collect(self._act)

  def _act(self, sample: dict[str, Any], state: Tensor, _restart: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions [local_envs, num_actions] and the state, see `collector.Act`."""
    self.replay.keep_obs(self.collector.obs, self.observations.moments)
    with threads.use(self.collector.threads):
      policy = self.executor.compiled(self.network)(sample["obs"])
    random = self.collector.random
    random.advance()
    uniform = random.uniform("off_policy.start", (self.env.num_actions,), -1.0, 1.0)
    action = self.explore(policy)
    if self.settings.greedy_envs:
      action = torch.where(self._greedy.unsqueeze(1), policy.action(policy.mode()), action)
    action = torch.where(random.step <= self.settings.learning_starts, uniform, action)
    sample["action"].copy_(action)
    return action, state

  def update(self) -> None:
    """Take gradient steps on transitions from the replay buffer, then merge the moments."""
    self.clock.begin("update/moments")
    self.executor.run(self._measure)
    pending = [own.pending for own in self.observations.moments.values()]
    self.world.sum_all_([*pending, self.rewards.moments.pending])
    self.executor.run(self._merge)
    if self.iteration - self._began >= self.first_update:
      for step in range(self.settings.horizon * self.settings.updates_per_step):
        self.clock.begin("update/critics")
        if step % self.sampler.batches == 0:
          self.executor.run(self._draw)
        self._train_critics()
        if step % self.settings.policy_delay == 0:
          self._train_policy()
    self.iteration += 1
    self.clock.begin("other")

  def _train_critics(self) -> None:
    """Take a gradient step of the critics on the next batch; the targets follow."""
    self.executor.run_parts(self._differentiate_critics, tape=self._tape)
    self.optimizers["critics"].reduce()
    self.executor.run(self._step_critics, tape=self._tape)

  def _train_policy(self) -> None:
    """Take a gradient step of policy and temperature on the present batch."""
    self.clock.begin("update/policy")
    self.executor.run_parts(self._differentiate_policy, tape=self._tape)
    for optimizer in self._policy_optimizers:
      optimizer.reduce()
    self.executor.run(self._step_policy, tape=self._tape)

  @property
  def _policy_optimizers(self) -> list[Optimizer]:
    return [optimizer for name, optimizer in self.optimizers.items() if name != "critics"]

  @torch.no_grad()
  def _measure(self) -> None:
    """Sum up the newest raw rewards for their automatic scale, and let the sampler know of the steps."""
    self.rewards.accumulate(self.replay.newest("reward"), self.replay.newest("valid"))
    self.sampler.add()

  @torch.no_grad()
  def _merge(self) -> None:
    """Merge the observations and rewards of all ranks into the moments."""
    self.observations.merge()
    if self.rewards.automatic:
      self.rescale(self.rewards.merge())
    else:
      self.rewards.moments.forget()

  def rescale(self, factor: Tensor) -> None:
    """Multiply the critics' values by the factor [1] by which the scale of the rewards has changed."""
    rescale(factor, self.critics.head, self.targets.head)

  def _differentiate_critics(self) -> None:
    """Compute the gradient of the critics on the next batch."""
    optimizer = self.optimizers["critics"]
    self.executor.compiled(self._compute_targets)()
    optimizer.clear()
    objective, sums, error = self.executor.compiled(self._critic_objective)()
    objective.backward()
    optimizer.sums.copy_(sums)
    self.executor.compiled(self.sampler.learn)(error)

  @torch.no_grad()
  def _draw(self) -> None:
    """Draw the batches of the next gradient steps."""
    draw, decay = self.sampler.draw(), (self.settings.n_step, self.settings.gamma)
    drawn = self.replay.transitions(draw.rows, draw.envs, decay, self.rewards)
    self.shift(drawn.obs, self.sampler.uniform)
    self.shift(drawn.next_obs, self.sampler.uniform, "the next ")
    noise = {purpose: self.sampler.normal(purpose, self.env.num_actions) for purpose in self.noises}
    self.batch.fill(draw, drawn, noise, self.observations)

  @torch.no_grad()
  def _compute_targets(self) -> None:
    """Go to the next batch, and compute what the critics are to learn from it."""
    batch = self.batch
    batch.advance()
    action, bonus = self.next_action(self.network(batch.next_obs))
    value = self._joint(self.targets(batch.next_obs, action))
    batch.return_.copy_(target(batch.reward, batch.discount, value + bonus))

  def _critic_objective(self) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss of the critics on the present batch, its sums, and the errors [n]."""
    batch, values = self.batch, self.critics(self.batch.obs, self.batch.action)
    return critic_loss(values, self._joint(values), batch.return_, batch.age, batch.importance)

  def evaluate(self, action: Tensor) -> Tensor:
    """Return the values [n] of actions [n, num_actions] where the present batch begins."""
    return self._joint(self.critics(self.batch.obs, action))

  @torch.no_grad()
  def _step_critics(self) -> None:
    """Take a gradient step of the critics; their targets follow by a share tau (Lillicrap et al. 2015)."""
    optimizer = self.optimizers["critics"]
    optimizer.step()
    self._target_weights.lerp_(optimizer.weights, self.settings.tau)
    self.losses[0].add(optimizer.sums, optimizer.norm)

  def _differentiate_policy(self) -> None:
    """Compute the gradient of the policy on the present batch."""
    for optimizer in self._policy_optimizers:
      optimizer.clear()
    for weight in self._critic_weights:  # their gradient is not needed
      weight.requires_grad_(False)
    objective, sums, terms = self.executor.compiled(self._policy_objective)()
    if self.own_loss:
      self.own_loss.keep(terms, self.batch.weight)
    objective.backward()
    for weight in self._critic_weights:
      weight.requires_grad_(True)
    for optimizer in self._policy_optimizers:
      optimizer.sums.copy_(sums[: len(optimizer.sums)])

  def _policy_objective(self) -> tuple[Tensor, Tensor, Mapping[str, Tensor]]:
    """Return the loss of the policy on the present batch, its sums, and its terms by name."""
    found, batch = self.policy_loss(), self.batch
    terms: Mapping[str, Tensor] = found.terms
    if self.own_loss:
      terms = self.own_loss(found.terms, found.policy, found.value, batch.samples())
    loss = total(terms, batch.weight)
    return loss if found.other is None else loss + found.other, found.sums, terms

  def _step_policy(self) -> None:
    """Take a gradient step of the policy; its average follows."""
    for optimizer in self._policy_optimizers:
      optimizer.step()
    self.average.update()
    self.losses[1].add(self.optimizers["actor"].sums, self.optimizers["actor"].norm)

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report as scalars on the device; every rank calls."""
    if self.own_loss and not self.own_loss.means.names:  # nothing is learnt yet: the empty batch names them
      with torch.no_grad():
        self.own_loss.keep(self._policy_objective()[2], self.batch.weight)
    losses = self.losses[1].report() | self.losses[0].report()  # without a gradient step they are no numbers
    learnt = self.iteration - self._began > self.first_update
    values = super().report() | (losses if learnt else {})
    return values | {
      "learning_rate": self.optimizers["critics"].rate,
      "skipped_updates": torch.stack([own.skipped for own in self.optimizers.values()]).sum(0),
      "reward_scale": self.rewards.scale,
      "replay/filled": self.replay.filled / self.replay.length,
      "updates_per_sample": torch.full((1,), self.updates_per_sample, device=self.env.device),
    }

  @property
  def updates_per_sample(self) -> float:
    """How often a transition is learnt from in the mean: the update-to-data ratio."""
    return self.settings.updates_per_step * self.settings.batch_size / self.num_envs

  @property
  def modules(self) -> dict[str, nn.Module]:
    """The networks besides the policy's, by their names in a checkpoint."""
    return {"critics": self.critics, "targets": self.targets, "average": self.average.network}

  @property
  def policy_parts(self) -> Parts:
    """The other networks, and the unit of the values."""
    return self.modules | {"rewards": self.rewards}

  @property
  def parts(self) -> Parts:
    """What a checkpoint keeps of the training."""
    return {"optimizers": self.optimizers, "draws": self.sampler.random}

  def load_policy(self, state: Mapping[str, Any]) -> None:
    """Load networks and moments from a `policy_dict` or `state_dict`."""
    super().load_policy({"average": state["network"], **state})  # older checkpoints have no average

  def rank_dict(self) -> dict[str, Any]:
    """Return the state of the replay buffer if checkpoints keep it."""
    return state_of({"replay": self.replay, "sampler": self.sampler}) if self.settings.save_buffer else {}

  def state_dict(self) -> dict[str, Any]:
    """Return the complete training state of all ranks but the rows of `buffer`; every rank calls."""
    return super().state_dict() | {"began": self._began}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue training with identical numbers; raise ValueError if the number of ranks differs.

    The rows of `buffer` are to be loaded too. A replay buffer that a checkpoint lacks is filled anew.
    """
    super().load_state_dict(state)
    own = state["ranks"][self.world.rank]
    if self.settings.save_buffer and "replay" in own:
      load_state({"replay": self.replay, "sampler": self.sampler}, own)
      self._began = state["began"]
    else:
      self.replay.clear()
      self.sampler.clear()
      self._began = self.iteration
