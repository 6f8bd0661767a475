"""Random network distillation: a reward for novelty (RND; Burda et al. 2018, arXiv 1810.12894)."""

import torch
from torch import Tensor, nn

from gpurobot.learn.env import VecEnv
from gpurobot.learn.layers import relu_network
from gpurobot.learn.learned_reward import LearnedReward, Training
from gpurobot.learn.loss import linear
from gpurobot.settings.algorithms import RNDConfig
from gpurobot.settings.config import ConfigError, suggestion

UPDATES, SAMPLES = 4, 2  # gradient steps of an iteration, as PPO's epochs; observations of each environment
DECAY = 0.9  # factor on the weight of earlier rollouts' errors at each merge


def columns(rnd: RNDConfig, env: VecEnv) -> list[int]:
  """Return the columns of the observation group that count; raise ConfigError if there are none."""
  if rnd.group not in env.obs_dims:
    raise ConfigError(
      f"ppo.rnd.group={rnd.group}: the task has the observation groups {', '.join(env.obs_dims)}"
      f"{suggestion(rnd.group, list(env.obs_dims))}"
    )
  if not env.obs_dims[rnd.group]:
    raise ConfigError(f"ppo.rnd.group={rnd.group}: novelty is of numbers, and this group has images alone")
  names = env.obs_names.get(rnd.group, [])
  for block in rnd.blocks:
    if block not in names:
      known = list(dict.fromkeys(names))
      raise ConfigError(
        f"ppo.rnd.blocks: the group {rnd.group} has no block '{block}', but {', '.join(known) or 'no names'}"
        f"{suggestion(block, known)}"
      )
  return [i for i in range(env.obs_dims[rnd.group]) if not rnd.blocks or names[i] in rnd.blocks]


class Distillation(nn.Module):
  """A predictor of what a random, frozen network makes of observations [..., width]."""

  def __init__(self, width: int, rnd: RNDConfig) -> None:
    super().__init__()
    self.target = relu_network(width, rnd.hidden, rnd.outputs).requires_grad_(requires_grad=False)
    # Without biases it were f(a x) = a f(x), and the near would teach the predictor the far in its direction.
    for name, weights in self.target.named_parameters():
      if name.endswith("bias"):
        nn.init.uniform_(weights, -1, 1)
    self.predictor = relu_network(width, rnd.hidden, rnd.outputs)

  def forward(self, obs: Tensor) -> Tensor:
    """Return the errors [...] of the predictor: their squares, mean over the target's outputs."""
    return (self.predictor(obs) - self.target(obs)).square().mean(-1)


class NoveltyReward(LearnedReward):
  """Reward for observations that the predictor has not learnt yet, as they were rare so far.

  The errors are divided by their own standard deviation, over all ranks and about the last ten rollouts. Over
  all rollouts it would stay that of the first ones, in which all is new, and the reward would vanish: with
  the cube's place in cube_lift it fell from 2.4 to 0.014 in 2 M steps. Burda et al.
  divide by the deviation of the discounted sums, which takes a running sum for each environment. What the two
  differ by is nearly constant, and belongs to the weight. Until there is a deviation the reward is 0.

  Observations come from the rollout, normalised and clipped as the networks see them. A step is rewarded
  for the observation in which it was taken, and the values carry that to the steps before.
  """

  name = "rnd"
  sums = ("weight", "error")

  def __init__(self, training: Training) -> None:
    """Draw the target's weights, the same on every rank."""
    rnd = self.settings = training.config.ppo.rnd
    self.network: Distillation
    seen = columns(rnd, training.env)
    super().__init__(training, Distillation(len(seen), rnd), rnd.lr, width=1)
    self.updates = UPDATES
    self.moments.relative = True  # errors fall without end
    self.columns = torch.tensor(seen, device=self.device)
    for weights in self.network.target.parameters():
      self.world.broadcast_(weights.data)

  def weight(self, steps: int) -> float:
    """Return the weight of the reward after `steps` environment steps."""
    rnd = self.settings
    return linear(rnd.weight, rnd.weight_final, rnd.weight_steps, steps)

  def reward(self) -> Tensor:
    """Return the errors [horizon, local_envs] of the rollout in their standard deviations."""
    error = self.network(self.obs)
    self.moments.accumulate(error.reshape(-1, 1), self.rollout.samples["valid"].flatten())
    return torch.where(self.moments.count > 0, error / self.moments.unit[1], 0)

  @property
  def obs(self) -> Tensor:
    """Observations [horizon, local_envs, width] of the rollout."""
    return self.rollout.samples["obs", self.settings.group][..., self.columns].to(self.dtype)

  def merge(self) -> None:
    """Merge the errors of all ranks into the moments; earlier rollouts count for less."""
    self.moments.decay(DECAY)
    super().merge()

  def draw(self) -> tuple[Tensor, ...]:
    """Return observations [n, width] of random steps, and weights [n], 0 where a step is not valid."""
    step = self.pick("rnd.steps", SAMPLES, self.horizon)
    weight = self.at(self.rollout.samples["valid"], step).to(self.dtype)
    obs = self.at(self.rollout.samples["obs", self.settings.group], step)
    return obs[:, self.columns].to(self.dtype), weight

  def loss(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
    """Return the error of the predictor, summed by weight, and the sums."""
    obs, weight = batch
    error = self.network(obs) @ weight
    return error, torch.stack([weight.sum(), error.detach()])
