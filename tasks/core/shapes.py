"""Shapes that broadcast one number per environment over tensors of environments."""

from torch import Tensor


def like(values: Tensor, tensor: Tensor) -> Tensor:
  """Return values [num_envs], reshaped to broadcast over a tensor [num_envs, ...]."""
  return values.view(-1, *[1] * (tensor.ndim - 1))
