"""Layers of the networks."""

import itertools
import math
from collections.abc import Sequence

from torch import nn


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
  """Return a layer [..., inputs] to [..., outputs]: orthogonal weights (Saxe et al. 2013), zero bias."""
  layer = nn.Linear(inputs, outputs)
  nn.init.orthogonal_(layer.weight, gain)
  nn.init.zeros_(layer.bias)
  return layer


def relu_network(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
  """Return hidden layers with ReLU and a linear output layer: [..., inputs] to [..., outputs]."""
  layers: list[nn.Module] = []
  for before, after in itertools.pairwise((inputs, *hidden)):
    layers += [linear(before, after, gain=math.sqrt(2)), nn.ReLU()]
  return nn.Sequential(*layers, linear((inputs, *hidden)[-1], outputs, gain=1.0))
