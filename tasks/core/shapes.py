"""Numbers of environments beside tensors of environments."""

from torch import Tensor


def like(values: Tensor, tensor: Tensor) -> Tensor:
  """Return values [num_envs] in a shape that broadcasts to a tensor [num_envs, ...]."""
  return values.view(-1, *[1] * (tensor.ndim - 1))
