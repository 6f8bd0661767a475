"""Layers of the networks."""

from torch import nn


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
  """Return a layer [..., inputs] to [..., outputs]: orthogonal weights (Saxe et al. 2013), zero bias."""
  layer = nn.Linear(inputs, outputs)
  nn.init.orthogonal_(layer.weight, gain)
  nn.init.zeros_(layer.bias)
  return layer
