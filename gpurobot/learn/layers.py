"""Layers of the networks."""

import itertools
import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

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


def hidden(layers: nn.Module, x: Tensor, rounded: bool, dtype: torch.dtype) -> Tensor:
  """Return the features [..., units] of hidden layers in a type; `rounded`: they are computed in bf16."""
  if not rounded:  # a context that changes nothing takes as long as two small layers
    return layers(x).to(dtype)
  with torch.autocast(x.device.type, torch.bfloat16):
    return layers(x).to(dtype)


def relu_network(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
  """Return hidden layers with ReLU and a linear output layer: [..., inputs] to [..., outputs]."""
  layers: list[nn.Module] = []
  for before, after in itertools.pairwise((inputs, *hidden)):
    layers += [linear(before, after, gain=math.sqrt(2)), nn.ReLU()]
  return nn.Sequential(*layers, linear((inputs, *hidden)[-1], outputs, gain=1.0))
