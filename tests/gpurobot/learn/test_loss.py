"""The loss against its definition, sample by sample in double precision; its gradient against calculus."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from gpurobot.learn.critic import ScalarValue
from gpurobot.learn.distribution import Gaussian
from gpurobot.learn.loss import SUMS, adapt, linear, loss_terms, rate_limits, rate_scale, total
from gpurobot.settings.algorithms import PPOConfig, Scaling

ENTROPY = 0.05
SETTINGS = PPOConfig(entropy_coef=ENTROPY, bounds_coef=0.5, mirror_coef=0.3, critic_coef=1.7)


class Case:
  """Random samples, an old and a new policy, values, and what the policy does in a mirror."""

  def __init__(self, n: int = 40) -> None:
    g = torch.Generator().manual_seed(0)

    def normal(*shape):
      return torch.randn(*shape, generator=g, dtype=torch.float64)

    self.old = Gaussian(normal(n, 2), 0.3 * normal(2))
    self.mean = (self.old.mean + 0.3 * normal(n, 2)).requires_grad_()
    self.log_std = (self.old.log_std + 0.1).requires_grad_()
    self.value = normal(n).requires_grad_()
    self.mirrored = normal(n, 2)
    action = self.old.mean + self.old.log_std.exp() * normal(n, 2)
    batch = {
      "action": action,
      "log_prob": self.old.log_prob(action),
      "value": normal(n),
      "return_": normal(n),
    }
    batch |= {"advantage": normal(n), "weight": (torch.arange(n) % 4 > 0).double()}
    self.batch = TensorDict(batch, [n])

  def loss(self, ppo: PPOConfig, mirrored: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    policies = (Gaussian(self.mean, self.log_std), self.old)
    mirror = Gaussian(self.mirrored, self.log_std) if mirrored else None
    value = ScalarValue(self.value)
    entropy_coef = torch.tensor(ENTROPY, dtype=torch.float64)
    terms, sums = loss_terms(policies, value, self.batch, ppo, entropy_coef, mirror)
    return total(terms, self.batch["weight"]), sums


def parts_of(case: Case, i: int, ppo: PPOConfig) -> dict[str, float]:
  """Return the parts of the objective for sample i, from their definitions."""
  log_std, old_log_std = case.log_std.detach().numpy(), case.old.log_std.numpy()
  mean, old_mean = case.mean[i].detach().numpy(), case.old.mean[i].numpy()
  entry = {name: x[i].numpy() for name, x in case.batch.items()}
  z = (entry["action"] - mean) / np.exp(log_std)
  log_prob = sum(-0.5 * zj**2 - s - 0.5 * math.log(2 * math.pi) for zj, s in zip(z, log_std, strict=True))
  ratio = math.exp(log_prob - entry["log_prob"])
  near = min(max(ratio, 1 - ppo.clip), 1 + ppo.clip)
  v, old_v = float(case.value[i].detach()), float(entry["value"])
  clipped_v = old_v + min(max(v - old_v, -ppo.value_clip), ppo.value_clip)
  spread = np.exp(2 * (old_log_std - log_std)) + (old_mean - mean) ** 2 / np.exp(2 * log_std)
  return {
    "weight": 1.0,
    "kl": float(np.sum(log_std - old_log_std + spread / 2 - 0.5)),
    "policy_loss": -min(ratio * entry["advantage"], near * entry["advantage"]),
    "value_loss": 0.5 * max((v - entry["return_"]) ** 2, (clipped_v - entry["return_"]) ** 2),
    "bounds_loss": sum(max(abs(m) - 1.1, 0) ** 2 for m in mean),
    "mirror_loss": float(np.sum((mean - case.mirrored[i].numpy()) ** 2)),
    "entropy": sum(s + 0.5 * math.log(2 * math.pi * math.e) for s in log_std),
    "clipped": float(ratio != near),
  }


def test_loss_against_the_definitions():
  case, ppo = Case(), SETTINGS
  objective, sums = case.loss(ppo)
  parts = [(w, parts_of(case, i, ppo)) for i, w in enumerate(case.batch["weight"].tolist())]
  expected = {name: sum(w * part[name] for w, part in parts) for name in SUMS}
  assert dict(zip(SUMS, sums.tolist(), strict=True)) == pytest.approx(expected, rel=1e-12)
  total = expected["policy_loss"] + 1.7 * expected["value_loss"] + 0.5 * expected["bounds_loss"]
  total += 0.3 * expected["mirror_loss"] - ENTROPY * expected["entropy"]
  assert objective.item() == pytest.approx(total, rel=1e-12)
  assert 0 < expected["clipped"] < expected["weight"] == 30


def test_gradient_against_calculus():
  case, ppo = Case(), SETTINGS
  case.loss(ppo)[0].backward()
  mean, log_std, value = (x.detach().numpy() for x in (case.mean, case.log_std, case.value))
  batch = {name: x.numpy() for name, x in case.batch.items()}
  std, weight, advantage = np.exp(log_std), batch["weight"], batch["advantage"]
  z = (batch["action"] - mean) / std
  ratio = np.exp((-0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)).sum(1) - batch["log_prob"])
  stopped = (ratio > 1 + ppo.clip) & (advantage > 0) | (ratio < 1 - ppo.clip) & (advantage < 0)
  slope = -weight * advantage * ratio * ~stopped  # of the loss by the log probability
  bounds = 2 * ppo.bounds_coef * np.sign(mean) * np.maximum(np.abs(mean) - 1.1, 0)
  mirror = 2 * ppo.mirror_coef * (mean - case.mirrored.numpy())
  by_mean = slope[:, None] * z / std + weight[:, None] * (bounds + mirror)
  by_log_std = (slope[:, None] * (z**2 - 1)).sum(0) - ENTROPY * weight.sum()
  error, moved = value - batch["return_"], value - batch["value"]
  near = batch["value"] + np.clip(moved, -ppo.value_clip, ppo.value_clip) - batch["return_"]
  # Where the clipped value is the worse one it does not move with the value.
  by_value = ppo.critic_coef * weight * error * ((error**2 >= near**2) | (np.abs(moved) <= ppo.value_clip))
  np.testing.assert_allclose(case.mean.grad, by_mean, rtol=1e-11, atol=1e-13)
  np.testing.assert_allclose(case.log_std.grad, by_log_std, rtol=1e-11)
  np.testing.assert_allclose(case.value.grad, by_value, rtol=1e-11, atol=1e-13)
  assert 0 < int(stopped.sum()) < 40
  assert 0 < int((by_value == 0).sum()) - 10 < 30


def test_without_a_mirror_there_is_no_mirror_loss():
  case = Case()
  sums = dict(zip(SUMS, case.loss(SETTINGS, mirrored=False)[1].tolist(), strict=True))
  assert sums["mirror_loss"] == 0 < sums["bounds_loss"]


def test_a_sample_and_its_image_count_alike():
  """The image by hand: of a = (a0, a1) it is (-a1, a0), and its old probability is that of the sample."""
  case, ppo = Case(), dataclasses.replace(SETTINGS, mirror_augment=True)
  index, sign = torch.tensor([1, 0]), torch.tensor([-1.0, 1.0]).double()
  back = torch.tensor([1.0, -1.0]).double()  # of the inverse, as this reflection is not its own
  shown = Gaussian(case.old.mean[:, index] * sign + 0.2, case.log_std)  # for the mirrored observations
  case.mirrored, log_std = shown.reflect(index, back).mean, case.log_std.detach()
  case.log_std = shown.reflect(index, back).log_std.detach()
  expected = []
  for i in range(40):
    entry = {name: x[i] for name, x in case.batch.items()}
    image = torch.stack([-entry["action"][1], entry["action"][0]])
    z = (image - shown.mean[i]) / log_std.exp()
    log_prob = (-0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)).sum()
    ratio = math.exp(log_prob - entry["log_prob"])
    near = min(max(ratio, 1 - ppo.clip), 1 + ppo.clip)
    expected.append(-min(ratio * entry["advantage"], near * entry["advantage"]))
  own = [parts_of(case, i, ppo)["policy_loss"] for i in range(40)]
  found = dict(zip(SUMS, case.loss(ppo)[1].tolist(), strict=True))
  weight = case.batch["weight"].numpy()
  assert found["policy_loss"] == pytest.approx(weight @ (np.array(own) + np.array(expected)) / 2, rel=1e-12)


def test_sequences_count_step_by_step():
  """The same samples as 5 steps of 8 environments give the same sums."""
  case = Case()
  flat, sums = case.loss(SETTINGS)
  case.batch = case.batch.reshape(5, 8)
  case.old = Gaussian(case.old.mean.view(5, 8, 2), case.old.log_std)
  case.mean, case.value, case.mirrored = (
    case.mean.view(5, 8, 2),
    case.value.view(5, 8),
    case.mirrored.view(5, 8, 2),
  )
  whole, again = case.loss(SETTINGS)
  torch.testing.assert_close((whole, again), (flat, sums), rtol=1e-13, atol=0)


def test_the_learning_rate_follows_the_divergence():
  rate, limits = torch.tensor(1e-3), (1e-4, 1.2e-3)
  for kl, expected in ((0.01, 1e-3), (0.021, 1e-3 / 1.5), (0.019, 1e-3), (0.0049, 1.2e-3), (0.0051, 1e-3)):
    assert float(adapt(rate, torch.tensor(kl), 0.01, limits)) == pytest.approx(expected)
  assert float(adapt(torch.tensor(1.1e-4), torch.tensor(1.0), 0.01, limits)) == pytest.approx(1e-4)
  assert float(adapt(rate, torch.tensor(math.nan), 0.01, limits)) == float(rate)  # nothing was measured


@pytest.mark.parametrize(
  ("scaling", "factors"), [("none", (1, 1, 1)), ("sqrt", (1, 2, 0.5)), ("linear", (1, 4, 0.25))]
)
def test_the_learning_rate_grows_with_the_minibatch(scaling, factors):
  ppo = PPOConfig(lr_scaling=Scaling(scaling))
  assert tuple(rate_scale(ppo, num_envs) for num_envs in (4096, 16384, 1024)) == factors
  assert rate_limits(ppo, 16384) == pytest.approx((1e-6 * factors[1], 1e-2 * factors[1]))


def test_the_weight_of_the_entropy_falls_linearly_and_stays():
  found = [linear(0.02, 0.01, 1000, steps) for steps in (0, 250, 1000, 5000)]
  assert found == pytest.approx([0.02, 0.0175, 0.01, 0.01])
  assert linear(0.02, None, 1000, 10**9) == 0.02
