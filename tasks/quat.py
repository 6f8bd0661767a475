"""Quaternions (w, x, y, z) on tensors: the last dimension holds the four numbers, all others are batch."""

import torch
from torch import Tensor


def to_matrix(q: Tensor) -> Tensor:
  """Return rotations [..., 3, 3] of unit quaternions `q` [..., 4]; column j is body axis j in the world."""
  w, x, y, z = q.unbind(-1)
  x2, y2, z2 = 2 * x, 2 * y, 2 * z
  xx, yy, zz = x * x2, y * y2, z * z2
  xy, xz, yz = x * y2, x * z2, y * z2
  wx, wy, wz = w * x2, w * y2, w * z2
  entries = [
    1 - (yy + zz),
    xy - wz,
    xz + wy,
    xy + wz,
    1 - (xx + zz),
    yz - wx,
    xz - wy,
    yz + wx,
    1 - (xx + yy),
  ]
  # Stacked along the first dimension: each entry stays contiguous over the environments, as the state is.
  return torch.stack(entries).movedim(0, -1).unflatten(-1, (3, 3))


def to_body(rotation: Tensor, vector: Tensor) -> Tensor:
  """Return `vector` [..., 3], given in the world, in the body frames of `rotation` [..., 3, 3]."""
  x, y, z = vector.unsqueeze(-1).unbind(-2)
  return rotation[..., 0, :] * x + rotation[..., 1, :] * y + rotation[..., 2, :] * z
