"""Distillation of teachers into a student that acts (DAgger; Ross et al. 2011, arXiv 1011.0686)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from gpurobot.device import threads
from gpurobot.device.distributed import World
from gpurobot.learn import teacher as teaching
from gpurobot.learn.agent import Spaces, actor_critic
from gpurobot.learn.algorithm import Algorithm, counted, epoch_words, network_words, replayed
from gpurobot.learn.collector import Collector
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.encoder import RandomShift
from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.image_setup import check_images, check_rollout, rollout_words
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.optimizer import Optimizer
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import MinibatchEpochs, Rollout, make_sampler
from gpurobot.learn.saved_state import Parts
from gpurobot.learn.statistics import LossMeans
from gpurobot.learn.teacher import Teacher
from gpurobot.settings.algorithms import DistillConfig, DistillLoss
from gpurobot.settings.config import ConfigError, TrainConfig, sequence_length

# Names of the sums that `distill_loss` returns, over samples by weight; the first is the sum of the weights.
SUMS = ("weight", "kl", "teacher_error", "entropy")


def distill_loss(
  teacher: Distribution, student: Distribution, weight: Tensor, loss: DistillLoss
) -> tuple[Tensor, Tensor]:
  """Return the loss, a scalar, and sums of its parts [len(SUMS)], over samples by weight [...].

  teacher, student: action distributions [...] of one kind. Their divergence is KL(teacher || student): it is
  least where the student has the teacher's distribution, or, where the student sees too little, a wider one
  that covers all that the teacher might do there.
  """
  divergence, (aim, mode) = teacher.divergence(student), (teacher.mode(), student.mode())
  different = (aim - mode).square() if mode.is_floating_point() else (aim != mode).to(weight.dtype)
  error = different.mean(-1)
  chosen = (divergence if loss is DistillLoss.kl else error).flatten() @ weight.flatten()
  with torch.no_grad():
    parts = [torch.ones_like(divergence), divergence, error, student.entropy().expand_as(divergence)]
    return chosen, torch.stack(parts).flatten(1) @ weight.flatten()


def teacher_share(settings: DistillConfig, steps: int) -> float:
  """Return the share of environments that a teacher drives after `steps` environment steps."""
  return settings.mix * max(0.0, 1 - steps / settings.mix_steps)


class LabelledRollout(Rollout):
  """Rollout whose samples have the `label` of a teacher, the `parameters` of its actions."""

  kept = ("obs", "restart", "label", "weight")

  def _allocate(self, env: VecEnv, network: ActorCritic, zeros: Any) -> TensorDict:
    samples = super()._allocate(env, network, zeros)
    samples["label"] = zeros(teaching.label_width(env), dtype=network.dtype)
    return samples


class Distill(Algorithm):
  """One rank's part of a distillation.

  The student is a policy as PPO's; its critic stays as it starts. In each rollout it drives most of the
  environments, and a teacher the others; the teachers label every step.
  """

  def __init__(self, env: VecEnv, config: TrainConfig, world: World, teachers: Sequence[Teacher]) -> None:
    """Build the student, the same on every rank, and reset the environments.

    Raises ConfigError if settings or teachers do not fit the environment.
    """
    super().__init__(env, config, world, config.ppo.horizon)
    self.ppo, self.settings, self.teachers = config.ppo, config.distill, list(teachers)
    ppo = config.ppo
    check_images("ppo", ppo, env)
    check_rollout(ppo, env, env.device)
    self.agent = actor_critic(Spaces.of(env), ppo, env.device)
    self.network: ActorCritic = self.agent.network
    self.observations = self.agent.observations
    network = self.network
    self.student = nn.ModuleList([network.actor_input, network.actor, network.head])  # what learns
    self.optimizer = Optimizer(self.student, len(SUMS), self.settings.lr, ppo.max_grad_norm, world)
    self.losses = LossMeans(SUMS, env.device)
    self.rollout = LabelledRollout(env, self.network, ppo.horizon, sequence_length(ppo), env.device)
    self.shift = RandomShift(images_of(env), ppo.random_shift)
    self.collector = Collector(env, self.agent, self.rollout, config, world, self.executor)
    self.collector.statistics.parts["losses"] = self.losses
    self.clock = self.collector.clock
    self.sampler = make_sampler(self.rollout, config, world)
    tape = replayed(ppo, env, env.num_envs * ppo.horizon // ppo.minibatches)
    self.epochs = MinibatchEpochs(self.sampler, self.optimizer, self.executor, self.clock, tape=tape)
    self._kind = teaching.kind_of(self.agent)
    self._group = teaching.GROUP if teaching.GROUP in self.collector.obs.keys() else "policy"  # noqa: SIM118
    self._check(config.changed)
    # A teacher drives an environment as long as the share [1] is above the environment's own number
    # [local_envs]. If drivers changed from rollout to rollout, short episodes alone were the student's.
    self._share = torch.zeros(1, device=env.device)
    random = Random(config.seed, env.num_envs, world.rank * env.num_envs, env.device)
    self._turn = random.uniform("distill.driver", ())
    self._driven = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
    self.collector.statistics.episodes.marked["teacher"] = self._driven

  def _check(self, changed: bool) -> None:
    """Raise ConfigError if settings or teachers do not fit the environment."""
    if self.settings.loss is DistillLoss.mse and self.env.choices:
      raise ConfigError("distill.loss=mse needs continuous actions; write distill.loss=kl")
    width = self.collector.obs[self._group].shape[1]
    for teacher in self.teachers:
      teaching.check(teacher, self.env, self._group, width, self._kind, changed)

  def describe(self) -> str:
    """Return one line about the environments, the networks and the hyperparameters."""
    ppo, env = self.ppo, self.env
    return (
      f"{super().describe()}; {rollout_words(ppo, env)}"
      f"student {network_words(ppo, self.network.actor_input.width, env)}, {self.network.precision}, "
      f"of {counted(len(self.teachers), 'teacher')}, shown the group '{self._group}'; "
      f"{epoch_words(ppo, self.num_envs)}; learning rate {self.settings.lr:g}; "
      f"{self.settings.mix:.0%} of the environments driven by teachers at first, "
      f"none after {self.settings.mix_steps:,} steps"
    )

  def collect(self) -> None:
    """Fill the rollout; moments and weights do not change."""
    self._share.fill_(teacher_share(self.settings, self.steps))
    self.collector.run(self._collect)

  def _collect(self) -> None:
    self.collector.statistics.episodes.hand_over(self._turn < self._share)
    self.collector.collect(self._act, tape=True)

  def _act(self, sample: dict[str, Any], state: Tensor, restart: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions [local_envs, ...] and the next state, see `collector.Act`.

    Images are shifted before the student sees them, so that it learns from the images it acted on.
    """
    self.executor.compiled(self.shift)(sample["obs"], self.collector.random.uniform)
    obs = {group: x.unsqueeze(0) for group, x in sample["obs"].items()}
    shown = self.collector.obs[self._group]
    with threads.use(self.collector.threads):
      policy, own = self.executor.compiled(self.network.act)(obs, state, restart.unsqueeze(0))
      labels = [self.executor.compiled(teacher)(shown, restart) for teacher in self.teachers]
    action = self.executor.compiled(self._choose)(policy, labels, sample)
    return action, torch.cat([own, state[:, own.shape[1] :]], 1)  # the critic remembers nothing

  def _choose(self, policy: Distribution, labels: Sequence[Tensor], sample: Mapping[str, Tensor]) -> Tensor:
    """Store the label of each environment's teacher; return the driver's actions [local_envs, ...]."""
    random = self.collector.random
    random.advance()
    first = self.world.rank * self.env.num_envs
    index = teaching.assign(self.env, len(labels), first, self.num_envs)
    sample["label"].copy_(teaching.choose(labels, index))
    teacher = self._taught(sample["label"])
    own, shown = (one.action(one.sample(random)) for one in (policy, teacher))
    return torch.where(self._driven.unsqueeze(1), shown, own.squeeze(0))

  def _taught(self, label: Tensor) -> Distribution:
    """Return a teacher's action distribution [...] from its label [..., width]."""
    return teaching.distribution(label, self._kind, self.env.choices)

  def update(self) -> None:
    """Train the student on the rollout, then merge the moments."""
    self.clock.begin("update/moments")
    self.rollout.samples["weight"].copy_(self.rollout.samples["valid"])
    self.world.sum_all_([own.pending for own in self.observations.moments.values()])
    for _ in range(self.ppo.epochs):
      for index in self.epochs.draw():
        self.epochs.step(index, self._differentiate, self._step_optimizer)
    self.executor.run(self.observations.merge)
    self.iteration += 1
    self.clock.begin("other")

  def _differentiate(self) -> None:
    """Compute the gradient on this rank's part of a minibatch."""
    self.optimizer.clear()
    objective, sums = self.executor.compiled(self._objective)()
    self.clock.begin("update/backward")
    objective.backward()
    self.optimizer.sums.copy_(sums)

  def _objective(self) -> tuple[Tensor, Tensor]:
    """Return the loss of a minibatch and its sums."""
    batch, state = self.rollout.minibatch(self.epochs.rows)
    student, _ = self.network.act(batch["obs"], state, batch["restart"])
    return distill_loss(self._taught(batch["label"]), student, batch["weight"], self.settings.loss)

  def _step_optimizer(self) -> None:
    """Take one optimiser step with the gradient of all ranks."""
    self.optimizer.step()
    self.network.head.project()
    self.losses.add(self.optimizer.sums, self.optimizer.norm)

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report as scalars on the device; every rank calls."""
    return (
      super().report()
      | self.losses.report()
      | {
        "teacher_share": self._share,
        "learning_rate": self.optimizer.rate,
        "skipped_updates": self.optimizer.skipped,
      }
    )

  @property
  def parts(self) -> Parts:
    """What a checkpoint keeps of the training."""
    return {"optimizer": self.optimizer, "shuffle": self.sampler.random}

  def rank_dict(self) -> dict[str, Any]:
    """Return the teachers' memories, and which environments one of them drives."""
    return {"teachers": [teacher.state for teacher in self.teachers], "driven": self._driven}

  def state_dict(self) -> dict[str, Any]:
    """Return the complete training state of all ranks, and of the teachers a digest; every rank calls."""
    return super().state_dict() | {"teachers": [teacher.digest for teacher in self.teachers]}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue with identical numbers; raise ValueError if the ranks are not as many, or teachers others."""
    teaching.check_same(state["teachers"], self.teachers)
    super().load_state_dict(state)
    own = state["ranks"][self.world.rank]
    for teacher, remembered in zip(self.teachers, own["teachers"], strict=True):
      teacher.state.copy_(remembered)
    self._driven.copy_(own.get("driven", self._driven))
    self.collector.statistics.episodes.whole &= "driven" in own  # older checkpoints do not say whose they are
