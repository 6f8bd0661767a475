"""Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347): collect, loss, update."""

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torch.nn import functional

from gpurobot import process
from gpurobot.checkpoint import plain
from gpurobot.clock import Clock
from gpurobot.config import PPO, Config, RewardTransform, Scaling, Schedule, block
from gpurobot.distributed import World
from gpurobot.env import VecEnv
from gpurobot.network import ActorCritic, FlatMemory, Gaussian, resolve
from gpurobot.normalize import Moments, Observations, symlog
from gpurobot.random import Random
from gpurobot.rollout import Episodes, Means, Rollout, Shuffle

SUMS = (
  "weight",
  "policy_loss",
  "value_loss",
  "bounds_loss",
  "kl",
  "clipped",
)  # what `loss` adds up beside its gradient
ACTION_BOUND = 1.1  # beyond which action means are penalised: the environment clips actions to 1


def loss(
  output: tuple[Gaussian, Tensor], batch: TensorDictBase, old_log_std: Tensor, ppo: PPO
) -> tuple[Tensor, Tensor]:
  """Return the objective to minimise, summed over the samples by weight, and its parts' sums [len(SUMS)].

  output: the present policy and value (normalised) for the batch [n], which holds action, mean, log_prob and
  value of the rollout, advantage (normalised), return_ (normalised) and weight (0 where invalid, else 1).
  """
  policy, value = output
  ratio = (policy.log_prob(batch["action"]) - batch["log_prob"]).exp()
  near = ratio.clamp(1 - ppo.clip, 1 + ppo.clip)
  policy_loss = -torch.minimum(ratio * batch["advantage"], near * batch["advantage"])
  clipped = batch["value"] + (value - batch["value"]).clamp(-ppo.value_clip, ppo.value_clip)
  value_loss = 0.5 * torch.maximum((value - batch["return_"]).square(), (clipped - batch["return_"]).square())
  bounds_loss = functional.softshrink(policy.mean, ACTION_BOUND).square().sum(-1)
  objective = policy_loss + ppo.critic_coef * value_loss + ppo.bounds_coef * bounds_loss
  objective = objective - ppo.entropy_coef * policy.entropy()
  with torch.no_grad():
    kl = Gaussian(batch["mean"], old_log_std).divergence(policy)
    beyond = (ratio != near).to(value.dtype)
    parts = torch.stack([torch.ones_like(value), policy_loss, value_loss, bounds_loss, kl, beyond])
  return objective @ batch["weight"], parts @ batch["weight"]


def transform(reward: Tensor, ppo: PPO) -> Tensor:
  """Return what is learned from in the place of raw rewards."""
  if ppo.reward_transform is RewardTransform.none:
    return reward
  scaled = reward * ppo.reward_scale
  return symlog(scaled) if ppo.reward_transform is RewardTransform.symlog else scaled


def adapt(rate: Tensor, kl: Tensor, target: float, limits: tuple[float, float]) -> Tensor:
  """Return the learning rate, moved by a factor of 1.5 where the divergence leaves [target / 2, 2 target]."""
  factor = torch.where(kl > 2 * target, 1 / 1.5, torch.where(kl < 0.5 * target, 1.5, 1.0))
  return (rate * factor).clamp(*limits)


def rate_scale(ppo: PPO, num_envs: int) -> float:
  """Return the factor on learning rates for a minibatch of num_envs environments (over all ranks).

  Adam's noise per step stays the same under the square root (Malladi et al. 2022, arXiv 2205.10287).
  """
  times = num_envs * ppo.horizon / ppo.minibatches / ppo.reference_minibatch
  return times ** {Scaling.none: 0, Scaling.sqrt: 0.5, Scaling.linear: 1}[ppo.lr_scaling]


class Learner:
  """One rank's share of the training: `collect` and `update` in turn are an iteration."""

  def __init__(self, env: VecEnv, config: Config, world: World) -> None:
    """Build the network on the environment's device, the same on every rank, and start the first episodes."""
    ppo, device = config.ppo, env.device
    self.env, self.ppo, self.world = env, ppo, world
    self.clock = Clock(device)
    process.keep_memory()
    torch.manual_seed(config.seed)
    self.precision = resolve(ppo.precision, device)
    self.network = ActorCritic(env.obs_dims, env.num_actions, ppo, self.precision).to(device)
    self.memory = FlatMemory(self.network, len(SUMS))
    world.broadcast_(self.memory.weights.data)
    self.scale = rate_scale(ppo, config.num_envs)
    self.rate = torch.full((), ppo.lr * self.scale, device=device)
    self.rate_limits = (ppo.lr_min * self.scale, ppo.lr_max * self.scale)
    self.optimizer = torch.optim.Adam([self.memory.weights], lr=self.rate, eps=1e-8, fused=True)
    dtype = self.network.dtype
    dtypes = (dtype, self.network.input_dtype)
    self.observations = Observations(env.obs_dims, device, dtypes, ppo.normalize_obs)
    self.value_moments = Moments(1, device, dtype)
    self.rollout = Rollout(env, ppo.horizon, dtype, self.network.input_dtype)
    self.random = Random(config.seed, env.num_envs, world.rank * env.num_envs, device)
    blocks = env.num_envs // block(ppo)
    random = Random(config.seed, blocks, world.rank * blocks, device)
    self.shuffle = Shuffle(ppo.horizon, ppo.minibatches, block(ppo), random)
    self.episodes = Episodes(env.num_envs, device)
    self.means = Means(device)
    self.sums = torch.zeros(len(SUMS), dtype=dtype, device=device)  # since the last report, over all ranks
    self.num_envs = config.num_envs  # over all ranks
    self.iteration = 0
    self.obs: TensorDictBase = env.reset()

  @property
  def steps(self) -> int:
    """The environment steps so far, over all ranks."""
    return self.iteration * self.num_envs * self.ppo.horizon

  def describe(self) -> str:
    """Say in one line what is trained, and how."""
    ppo, network = self.ppo, self.network
    sizes = "-".join(map(str, (self.env.obs_dims["policy"], *ppo.hidden, self.env.num_actions)))
    threads = f" with {torch.get_num_threads()} thread(s)" if self.env.device.type == "cpu" else ""
    return (
      f"{self.num_envs} environments on {self.world.size} {self.env.device.type} rank(s){threads}; "
      f"network {sizes} {ppo.activation} {'shared' if network.shared else 'separate'}, {self.precision}; "
      f"horizon {ppo.horizon}, {ppo.epochs} epochs of {ppo.minibatches} minibatches of "
      f"{self.num_envs * ppo.horizon // ppo.minibatches} samples; "
      f"learning rate {ppo.lr:g} x {self.scale:.3g}"
    )

  @torch.no_grad()
  def collect(self) -> None:
    """Fill the rollout with the present policy's actions; moments and weights stay as they are."""
    self.rollout.restart()
    for sample in self.rollout.samples.unbind(0):
      self.clock.begin("policy")
      obs = self.observations(self.obs)
      policy, value = self.network(obs)
      self.random.advance()
      action = policy.sample(self.random.normal("ppo.action", (self.env.num_actions,)))
      self.clock.begin("physics")
      step = self.env.step(action.float())
      self.clock.begin("storage")
      shaped = transform(step["reward"], self.ppo)
      sample["obs"].update_(obs)
      for name, entry in (
        ("action", action),
        ("mean", policy.mean),
        ("log_prob", policy.log_prob(action)),
        ("value", value),
        ("reward", shaped.where(step["valid"], 0)),
        *((flag, step[flag]) for flag in ("terminated", "truncated", "valid")),
      ):
        sample[name].copy_(entry)
      self._count(step)
      self.obs = step["obs"]

  def _count(self, step: TensorDictBase) -> None:
    """Add a step to the moments and statistics, and keep the final observations of time limits."""
    valid = step["valid"]
    self.observations.accumulate(self.obs, valid)
    self.rollout.keep_final(step["final_obs"], step["truncated"])
    self.episodes.add(step["reward"], step["terminated"] | step["truncated"], valid)
    named = {f"reward/{name}": term for name, term in step["reward_terms"].items()}
    self.means.add(named | dict(step["metrics"].items()), valid)

  def update(self) -> None:
    """Improve the policy and value on the rollout, then let the moments move on."""
    self.clock.begin("update")
    batch, old_log_std = self._batch()
    for epoch in range(self.ppo.epochs):
      divergence = self.sums.new_zeros(2)  # sum and weight over minibatches
      for index, rows in enumerate(self.shuffle.draw()):
        sums = self._descend(batch[rows], old_log_std)
        self.sums += sums
        if (epoch, index) != (0, 0):  # there the policy is still the rollout's
          divergence += sums[[SUMS.index("kl"), SUMS.index("weight")]]
      if self.ppo.schedule is Schedule.adaptive and self.ppo.minibatches + epoch > 1:
        kl = divergence[0] / divergence[1].clamp(min=1)
        self.rate.copy_(adapt(self.rate, kl, self.ppo.kl_target, self.rate_limits))
    self.observations.merge(self.world)
    self.value_moments.merge(self.world)
    self.iteration += 1
    self.clock.begin("other")

  @torch.no_grad()
  def _batch(self) -> tuple[TensorDict, Tensor]:
    """Return what `loss` reads of all samples [horizon * num_envs], and the rollout's log_std."""
    samples, moments = self.rollout.samples, self.value_moments
    value = moments.denormalize(samples["value"])
    last = moments.denormalize(self.network.evaluate(self.observations(self.obs)))
    final_obs = self.observations(self.rollout.final_obs)
    final = moments.denormalize(self.network.evaluate(final_obs))
    advantage = self.rollout.advantages(value, last, final, (self.ppo.gamma, self.ppo.gae_lambda))
    return_ = advantage + value
    weight = samples["valid"].flatten().to(value.dtype)
    moments.accumulate(return_.reshape(-1, 1), weight)
    batch = samples.select("obs", "action", "mean", "log_prob", "value").reshape(-1)
    batch["advantage"] = self._standardize(advantage.flatten(), weight)
    batch["return_"] = moments.normalize(return_).flatten()
    batch["weight"] = weight
    return batch, self.network.log_std.detach().clone()

  def _standardize(self, advantage: Tensor, weight: Tensor) -> Tensor:
    """Return advantages with zero mean and unit variance over the valid samples of all ranks."""
    x, w = advantage.to(torch.float64), weight.to(torch.float64)
    n, first, second = self.world.sum_(torch.stack([w.sum(), w @ x, w @ x.square()]))
    mean = first / n.clamp(min=1)
    std = (second / n.clamp(min=1) - mean.square()).clamp(min=0).sqrt()
    return ((x - mean) / (std + 1e-8)).to(advantage.dtype)

  def _descend(self, batch: TensorDictBase, old_log_std: Tensor) -> Tensor:
    """Take one optimiser step on this rank's part of a minibatch; return `loss`'s sums over all ranks."""
    memory, begin = self.memory, self.clock.begin
    begin("update/forward")
    memory.reduced.zero_()
    objective, sums = loss(self.network(batch["obs"]), batch, old_log_std, self.ppo)
    begin("update/backward")
    objective.backward()
    memory.extra.copy_(sums)
    begin("update/reduce")
    self.world.sum_(memory.reduced)  # gradient and weight in one: invalid samples may be unequally many
    begin("update/optimiser")
    gradient = memory.gradient.div_(memory.extra[SUMS.index("weight")].clamp(min=1))
    gradient.mul_((self.ppo.max_grad_norm / (gradient.norm() + 1e-6)).clamp(max=1))
    self.optimizer.step()
    self.network.project()
    begin("update")
    return memory.extra

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report as scalars on the device; every rank calls."""
    ended = self.world.sum_(self.episodes.take())
    means = self.world.sum_(self.means.take())
    weight, *parts = self.sums.unbind()
    values = {
      "return": ended[0] / ended[2],  # nan where no episode ended
      "length": ended[1] / ended[2],
      "episodes": ended[2],
      "entropy": Gaussian(self.network.log_std, self.network.log_std.detach()).entropy(),
      "learning_rate": self.rate,
    }
    values |= {name: part / weight for name, part in zip(SUMS[1:], parts, strict=True)}
    values |= {name: total / means[0] for name, total in zip(self.means.names, means[1:], strict=True)}
    values |= {name: self.world.sum_(count.clone()) for name, count in self.env.counters().items()}
    self.sums = torch.zeros_like(self.sums)
    return values

  def state_dict(self) -> dict[str, Any]:
    """Return all that the future of the training depends on, every rank's part in it; every rank calls."""
    own = {
      "env": plain(self.env.state_dict()),
      "obs": plain(self.obs),
      "episodes": self.episodes.running.clone(),
    }
    return {
      "iteration": self.iteration,
      "network": self.network.state_dict(),
      "obs_dims": dict(self.env.obs_dims),
      "num_actions": self.env.num_actions,
      "observations": self.observations.state_dict(),
      "value_moments": self.value_moments.state_dict(),
      "optimizer": self.optimizer.state_dict()["state"],
      "rate": self.rate,
      "random": self.random.state_dict(),
      "shuffle": self.shuffle.random.state_dict(),
      "ranks": self.world.gather(own),
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue a training with identical numbers; raise ValueError where it had another number of ranks."""
    if len(state["ranks"]) != self.world.size:
      raise ValueError(f"it is of {len(state['ranks'])} rank(s), not {self.world.size}")
    self.load_policy(state)
    self.iteration = state["iteration"]
    self.rate.copy_(state["rate"])
    self.random.load_state_dict(state["random"])
    self.shuffle.random.load_state_dict(state["shuffle"])
    groups = self.optimizer.state_dict()["param_groups"]
    self.optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
    self.optimizer.param_groups[0]["lr"] = self.rate  # loading has put a copy there
    own = state["ranks"][self.world.rank]
    self.env.load_state_dict(own["env"])
    self.obs = TensorDict(own["obs"], batch_size=[self.env.num_envs])
    self.episodes.running.copy_(own["episodes"])

  def load_policy(self, state: Mapping[str, Any]) -> None:
    """Take over the network and the moments that belong to it."""
    self.network.load_state_dict(state["network"])
    self.observations.load_state_dict(state["observations"])
    self.value_moments.load_state_dict(state["value_moments"])
