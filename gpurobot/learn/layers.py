"""Layers of the networks."""

from typing import TypeVar

from torch import nn

L = TypeVar("L", nn.Linear, nn.Conv2d)


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
  """Return a layer [..., inputs] to [..., outputs]: orthogonal weights, zero bias."""
  return orthogonal(nn.Linear(inputs, outputs), gain)


def orthogonal(layer: L, gain: float) -> L:
  """Return a layer, now with orthogonal weights (Saxe et al. 2013) and zero bias."""
  nn.init.orthogonal_(layer.weight, gain)
  if layer.bias is not None:
    nn.init.zeros_(layer.bias)
  return layer
