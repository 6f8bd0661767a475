"""Twin delayed deep deterministic policy gradient (TD3; Fujimoto et al. 2018, arXiv 1802.09477).

    repeat:
      in N environments: a = pi(s) + noise; observe r and s'; store (s, a, r, s') in the replay buffer
      for each of G gradient steps, on a random batch of the buffer:
        a' = pi(s') + clip(noise, -c, c)
        y = r + gamma Q'(s', a')
        Q1, Q2: minimise (Q_i(s, a) - y)^2; target networks: Q_i' = (1 - tau) Q_i' + tau Q_i
        in every d-th step:
          pi: minimise -Q(s, pi(s))

Q is the mean of Q1 and Q2, or the smaller of them.
"""

from torch import Tensor

from gpurobot.device.distributed import World
from gpurobot.learn.distribution import Gaussian
from gpurobot.learn.env import VecEnv
from gpurobot.learn.off_policy.base import OffPolicy, PolicyLoss
from gpurobot.learn.off_policy.loss import TD3_SUMS, td3_terms
from gpurobot.learn.random import Random
from gpurobot.settings.config import ConfigError, TrainConfig


class TD3(OffPolicy):
  """One rank's part of TD3: a policy without noise, explored with a scale of noise for each environment.

  Many scales at once need no tuning by task (Seo et al. 2025, arXiv 2505.22642).
  """

  sums = TD3_SUMS
  noises = ("td3.next_action",)

  def __init__(self, env: VecEnv, config: TrainConfig, world: World) -> None:
    """Build policy, critics and replay buffer; see `OffPolicy`."""
    td3, first = config.td3, world.rank * env.num_envs
    if td3.noise_min > td3.noise_max:
      raise ConfigError(
        f"td3.noise_min={td3.noise_min:g} must not be greater than td3.noise_max={td3.noise_max:g}"
      )
    super().__init__(env, config, world)
    self.td3 = td3
    random = Random(config.seed, env.num_envs, first, env.device)
    scale = random.uniform("td3.noise_scale", (1,), td3.noise_min, td3.noise_max)
    self._scale = scale.to(self.network.dtype)  # [local_envs, 1]

  def explore(self, policy: Gaussian) -> Tensor:
    """Return the policy's actions with noise, as the environment clips them."""
    noise = self.collector.random.normal("td3.explore", (self.env.num_actions,))
    return policy.action(policy.mean + self._scale * noise).clamp(-1, 1)

  def next_action(self, policy: Gaussian) -> tuple[Tensor, Tensor]:
    """Return actions with a little noise, so that near actions get near values; nothing is added to them."""
    limit = self.td3.target_noise_clip
    noise = (self.td3.target_noise * self.batch.noise["td3.next_action"]).clamp(-limit, limit)
    action = (policy.mean + noise).clamp(-1, 1)
    return action, action.new_zeros(len(action))

  def policy_loss(self) -> PolicyLoss:
    """Return the loss of the policy."""
    policy = self.network(self.batch.obs)
    value = self.evaluate(policy.mean)
    return PolicyLoss(policy, value, *td3_terms(value, self.batch.weight))
