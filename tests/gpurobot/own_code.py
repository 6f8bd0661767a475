"""Networks and losses as a user writes them, for tests: some good, others not."""

import math

import torch
from torch import nn

from gpurobot.learn.layers import linear

TEXT = "no function"


def layers(width: int, hidden: list[int]) -> nn.Module:
  """Return the same layers as without a network of one's own."""
  parts: list[nn.Module] = []
  for units in hidden:
    parts += [linear(width, units, gain=math.sqrt(2)), nn.SiLU()]
    width = units
  return nn.Sequential(*parts)


class Residual(nn.Module):
  """A layer, and the inputs beside it."""

  def __init__(self, width, hidden):
    super().__init__()
    self.layer = nn.Linear(width, hidden[0])

  def forward(self, x):
    return torch.cat([x, torch.tanh(self.layer(x))], dim=-1)


class Flat(Residual):
  def forward(self, x):
    return x.flatten()


class Wide(Residual):
  def forward(self, x):
    return self.layer(torch.cat([x, x], dim=-1))


def number(width, hidden):
  return width


def dropout(width, hidden):
  return nn.Sequential(nn.Linear(width, 8), nn.Dropout(0.1))


def unchanged(terms, policy, value, batch):
  return terms


def plain_gradient(terms, policy, value, batch):
  """Replace the clipped objective by that of a policy gradient, and punish large actions."""
  log_prob = policy.log_prob(batch["action"])
  return terms | {"policy": -log_prob * batch["advantage"], "size": policy.mode().square().sum(-1)}


def imitation(terms, policy, value, batch):
  """Want nothing but the actions of the samples."""
  return {"imitation": (policy.mode() - batch["action"]).square().sum(-1)}


def mean(terms, policy, value, batch):
  return {"policy": next(iter(terms.values())).mean()}


def missing(terms, policy, value, batch):
  return {"policy": batch["advantages"]}
