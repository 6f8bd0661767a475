"""Copies of tensors from the device to the CPU."""

from typing import Any

import torch
from tensordict import TensorDictBase


def to_cpu(value: Any) -> Any:
  """Return a nested value with its tensors copied to the CPU and plain containers.

  `torch.load(weights_only=True)` can read it: dicts, lists, numbers, strings and tensors of the same shapes.
  """
  if isinstance(value, TensorDictBase):
    value = value.to_dict()
  if isinstance(value, dict):
    return {key: to_cpu(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [to_cpu(item) for item in value]
  if isinstance(value, torch.Tensor):
    return value.detach().to("cpu", copy=True)  # a copy, so that a view does not save its base
  return value
