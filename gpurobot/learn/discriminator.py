"""Adversarial motion priors: a reward for a reference's style (AMP; Peng et al. 2021, arXiv 2104.02180)."""

import torch
from torch import Tensor, nn

from gpurobot.learn.env import STYLE, VecEnv
from gpurobot.learn.layers import relu_network
from gpurobot.learn.learned_reward import LearnedReward, Training
from gpurobot.learn.normalize import BOUND
from gpurobot.settings.algorithms import AMPConfig
from gpurobot.settings.config import ConfigError

REPLAY, ITERATIONS = 32, 16  # pairs of each environment in the replay, from the last ITERATIONS
WEIGHT_DECAY = 1e-4  # weight of half the squared weights, as in IsaacGymEnvs' AMP


def reference_of(env: VecEnv, amp: AMPConfig) -> Tensor:
  """Return the reference pairs [n, 2, width] of environments; raise ConfigError if there are no usable ones.

  It reads them from the device, once.
  """
  given, reference = f"ppo.amp.style_weight={amp.style_weight:g}", env.style_reference
  if reference is None:
    raise ConfigError(f"{given}: the task has no style reference; write ppo.amp.style_weight=0")
  if reference.dim() != 3 or reference.shape[1] != 2 or not len(reference):
    raise ConfigError(f"{given}: style_reference has shape {list(reference.shape)}, not [pairs, 2, width]")
  if not reference.isfinite().all():
    raise ConfigError(f"{given}: style_reference has numbers that are not finite")
  return reference


class Discriminator(nn.Module):
  """Judge of pairs of successive states: near 1 for the reference's, near -1 for the policy's."""

  def __init__(self, inputs: int, amp: AMPConfig) -> None:
    super().__init__()
    self.layers = relu_network(inputs, amp.hidden, 1)

  def forward(self, x: Tensor) -> Tensor:
    """Return the judgement [...] of pairs [..., inputs]."""
    return self.layers(x).squeeze(-1)

  def slope(self, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the judgement [n] of pairs [n, inputs] and its gradient [n, inputs] by them.

    The gradient is written out, layer by layer, so that one backward pass differentiates it:
    torch.compile cannot differentiate twice.
    """
    *hidden, output = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
    active: list[Tensor] = []
    for layer in hidden:
      x = layer(x).relu()
      active.append(x > 0)
    gradient = output.weight.expand(len(x), -1)
    for layer, on in zip(reversed(hidden), reversed(active), strict=True):
      gradient = (gradient * on) @ layer.weight
    return output(x).squeeze(-1), gradient

  def size(self) -> Tensor:
    """Return the sum of the squared weights, without biases."""
    weights = [layer.weight for layer in self.layers if isinstance(layer, nn.Linear)]
    return torch.stack([weight.square().sum() for weight in weights]).sum()


def style_reward(judgement: Tensor) -> Tensor:
  """Return the rewards [...], 0 ... 1, of judgements [...] (equation 7 of Peng et al. 2021)."""
  return (1 - 0.25 * (judgement - 1).square()).clamp(min=0)


class StyleReward(LearnedReward):
  """Reward for pairs of successive states that a discriminator takes for the reference's.

  The features are the observation group "style", normalised by moments of as many states of the policy as of
  the reference, and clipped. A replay keeps pairs of the last iterations, as a ring.
  """

  name = "amp"
  sums = ("weight", "loss", "gradient_penalty", "policy_accuracy", "reference_accuracy")

  def __init__(self, training: Training) -> None:
    """Allocate the replay; the moments start as the reference's."""
    amp = self.settings = training.config.ppo.amp
    self.network: Discriminator
    reference = reference_of(training.env, amp)
    width = reference.shape[2]
    super().__init__(training, Discriminator(2 * width, amp), amp.lr, width)
    self.updates = amp.updates
    self.reference = reference.to(self.device)
    style = self.rollout.samples[STYLE]
    if style.shape[-1] != width:
      raise ConfigError(
        f"style_reference has states of {width} numbers, and the group '{STYLE}' has {style.shape[-1]}: the "
        "task must compute both in one way"
      )
    self.moments.accumulate(self.reference[:, 0], self.reference.new_ones(len(self.reference)))
    self.moments.merge()
    self.replay = style.new_zeros(REPLAY, *style.shape[1:])  # [replay, local_envs, 2, width]
    self.replay_valid = torch.zeros(REPLAY, self.local_envs, dtype=torch.bool, device=self.device)
    self.written = torch.zeros((), dtype=torch.int64, device=self.device)  # pairs of each environment so far
    self._fresh = torch.arange(min(self.horizon, REPLAY // ITERATIONS), device=self.device)

  def weight(self, steps: int) -> float:  # noqa: ARG002 (it is constant)
    """Return the weight of the reward."""
    return self.settings.style_weight

  def prepare(self, pairs: Tensor) -> Tensor:
    """Return the discriminator's inputs [..., 2 width] for pairs of states [..., 2, width]."""
    return self.moments.normalize(pairs.to(self.dtype)).clamp(-BOUND, BOUND).flatten(-2)

  def reward(self) -> Tensor:
    """Return the style rewards [horizon, local_envs] of the rollout, 0 ... 1."""
    return style_reward(self.network(self.prepare(self.rollout.samples[STYLE])))

  def train(self) -> None:
    """Keep a few pairs of the rollout, take the gradient steps, merge the moments; every rank calls."""
    self.executor.run(self._keep)
    super().train()

  @torch.no_grad()
  def _keep(self) -> None:
    """Write random steps of each environment over the oldest pairs of the replay."""
    self.random.advance()
    step = self.pick("amp.keep", len(self._fresh), self.horizon)
    place = (self._fresh + self.written) % len(self.replay)
    samples, shape = self.rollout.samples, step.shape
    self.replay.index_copy_(0, place, self.at(samples[STYLE], step).unflatten(0, shape))
    self.replay_valid.index_copy_(0, place, self.at(samples["valid"], step).unflatten(0, shape))
    self.written += len(self._fresh)

  @torch.no_grad()
  def draw(self) -> tuple[Tensor, ...]:
    """Return inputs [n, 2 width] of the policy and of the reference, and weights [n], 0 where not valid.

    The first half of the policy's are of the rollout, the others of the replay.
    """
    count, samples = self.settings.samples, self.rollout.samples
    new = self.pick("amp.steps", count, self.horizon)
    old = self.pick("amp.replay", count, self.written.clamp(max=len(self.replay)))
    policy = torch.cat([self.at(samples[STYLE], new), self.at(self.replay, old)])
    weight = torch.cat([self.at(samples["valid"], new), self.at(self.replay_valid, old)]).to(self.dtype)
    reference = self.reference[self.pick("amp.reference", 2 * count, len(self.reference)).flatten()]
    for pairs in (policy, reference):
      self.moments.accumulate(pairs[:, 0], weight)
    return self.blur(self.prepare(policy), "policy"), self.blur(self.prepare(reference), "reference"), weight

  def blur(self, inputs: Tensor, purpose: str) -> Tensor:
    """Return inputs [count * local_envs, width] with noise, which each environment draws by itself."""
    if not self.settings.noise:
      return inputs
    count, width = len(inputs) // self.local_envs, inputs.shape[1]
    drawn = self.random.normal(f"amp.noise.{purpose}", (count, width)).transpose(0, 1).flatten(0, 1)
    return inputs + self.settings.noise * drawn.to(inputs.dtype)

  def loss(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of as many pairs of the policy as of the reference, summed by weight, and the sums."""
    policy, reference, weight = batch
    fake, (real, gradient) = self.network(policy), self.network.slope(reference)
    loss = (real - 1).square() + (fake + 1).square()
    penalty = gradient.square().sum(1)
    decay = WEIGHT_DECAY / 2 * self.network.size() * weight.sum()
    with torch.no_grad():
      parts = [torch.ones_like(loss), loss, penalty, (fake < 0).to(loss.dtype), (real > 0).to(loss.dtype)]
      sums = torch.stack(parts) @ weight
    return (loss + self.settings.gradient_penalty / 2 * penalty) @ weight + decay, sums

  def memory(self) -> dict[str, Tensor]:
    """Return the replay of this rank."""
    return {"replay": self.replay, "valid": self.replay_valid, "written": self.written}
