"""Copies of nested tensors: on the CPU, or where they are."""

from collections.abc import Callable
from typing import Any

import torch
from tensordict import TensorDictBase


def to_cpu(value: Any) -> Any:
  """Return a nested value with its tensors copied to the CPU and plain containers.

  `torch.load(weights_only=True)` can read it: dicts, lists, numbers, strings and tensors of the same shapes.
  """
  # A copy, so that a view does not save its base.
  return _copied(value, lambda tensor: tensor.detach().to("cpu", copy=True))


def cloned(value: Any) -> Any:
  """Return a nested value with its tensors copied on their devices, and plain containers."""
  return _copied(value, lambda tensor: tensor.detach().clone())


def _copied(value: Any, copy: Callable[[torch.Tensor], torch.Tensor]) -> Any:
  if isinstance(value, TensorDictBase):
    value = value.to_dict()
  if isinstance(value, dict):
    return {key: _copied(item, copy) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [_copied(item, copy) for item in value]
  return copy(value) if isinstance(value, torch.Tensor) else value
