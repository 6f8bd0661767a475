"""Copies on the CPU of what lies on a device."""

from typing import Any

import torch
from tensordict import TensorDictBase


def to_cpu(value: Any) -> Any:
  """Return nested dicts, lists, numbers, texts and tensors on the CPU: what a weights_only reader accepts."""
  if isinstance(value, TensorDictBase):
    value = value.to_dict()
  if isinstance(value, dict):
    return {key: to_cpu(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [to_cpu(item) for item in value]
  if isinstance(value, torch.Tensor):
    return value.detach().to("cpu", copy=True)  # without the memory that a view is part of
  return value
