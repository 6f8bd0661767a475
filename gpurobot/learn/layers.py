"""Building blocks of the networks."""

from torch import nn


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
  """Return a layer with orthogonal weights of this gain and no bias at the start (Saxe et al. 2013)."""
  layer = nn.Linear(inputs, outputs)
  nn.init.orthogonal_(layer.weight, gain)
  nn.init.zeros_(layer.bias)
  return layer
