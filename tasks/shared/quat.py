"""Quaternions (w, x, y, z) in the last dimension of tensors; all other dimensions are batch dimensions."""

import itertools

import torch
from torch import Tensor

# Signs of the mirror image of a vector when left and right are exchanged: a polar vector such as a velocity
# or a force; an axial vector such as an angular velocity or a torque.
POLAR, AXIAL = [1, -1, 1], [-1, 1, -1]
# The 24 rotations that leave a cube as it was: quaternions of one, two or four entries of equal size; q and
# -q are the same rotation.
CUBE_SYMMETRY = [
  [x / sum(map(abs, q)) ** 0.5 for x in q]
  for q in itertools.product((-1, 0, 1), repeat=4)
  if sum(map(abs, q)) in {1, 2, 4} and q > (0,) * 4
]


def to_matrix(q: Tensor) -> Tensor:
  """Return rotation matrices [..., 3, 3] of unit quaternions [..., 4]; column j is body axis j."""
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


def turn_between(a: Tensor, b: Tensor) -> Tensor:
  """Return the rotations, axis times angle [..., 3] [rad], that lead from rotation matrices `a` to `b`.

  a, b [..., 3, 3]. The axes are the world's, the angles at most pi; at pi the axis is not known.
  """
  twice_sine = cross(a.mT, b.mT).sum(-2)  # of the angle, along the axis, twice
  sine = 0.5 * twice_sine.square().sum(-1).sqrt()
  angle = torch.atan2(sine, 0.5 * ((a * b).sum((-1, -2)) - 1))
  return twice_sine * (angle / (2 * sine).clamp(min=1e-8)).unsqueeze(-1)


def upright(q: Tensor) -> Tensor:
  """Return the cosine [...] of the angle between the z axes of body and world, for quaternions [..., 4]."""
  return 1 - 2 * q[..., 1:3].square().sum(-1)


def to_body(rotation: Tensor, vector: Tensor) -> Tensor:
  """Return world vectors [..., 3] in the body frames [..., 3] of rotation matrices [..., 3, 3]."""
  x, y, z = vector.unsqueeze(-1).unbind(-2)
  return rotation[..., 0, :] * x + rotation[..., 1, :] * y + rotation[..., 2, :] * z


def multiply(a: Tensor, b: Tensor) -> Tensor:
  """Return the product [..., 4] of quaternions `a` and `b` [..., 4]: the rotation `b`, followed by `a`."""
  aw, ax, ay, az = a.unbind(-1)
  bw, bx, by, bz = b.unbind(-1)
  parts = [
    aw * bw - ax * bx - ay * by - az * bz,
    aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx,
    aw * bz + ax * by - ay * bx + az * bw,
  ]
  return torch.stack(parts).movedim(0, -1)


def conjugate(q: Tensor) -> Tensor:
  """Return the inverse [..., 4] of unit quaternions `q` [..., 4]."""
  return torch.cat([q[..., :1], -q[..., 1:]], dim=-1)


def smallest_alike(q: Tensor, symmetry: Tensor) -> Tensor:
  """Return orientations [N, 4], reduced to the smallest rotations that are equivalent under a symmetry.

  symmetry: unit quaternions [M, 4]. What a policy learns for one orientation then holds for all M.
  """
  nearest = (q.to(torch.float32) @ symmetry.T).abs().argmax(1)
  return multiply(q, conjugate(symmetry[nearest]))


def to_rotation_vector(q: Tensor) -> Tensor:
  """Return rotation vectors, axis times angle [..., 3] [rad], of unit quaternions [..., 4]; at most pi."""
  vector = q[..., 1:]
  sine = vector.square().sum(-1).sqrt()
  angle = 2.0 * torch.atan2(sine, q[..., 0].abs())
  return vector * torch.copysign(angle / sine.clamp(min=1e-8), q[..., 0]).unsqueeze(-1)


def from_rotation_vector(vector: Tensor) -> Tensor:
  """Return unit quaternions [..., 4] of rotation vectors, axis times angle [..., 3] [rad]."""
  half = 0.5 * vector.square().sum(-1, keepdim=True).sqrt()
  scale = 0.5 * torch.sinc(half / torch.pi)  # sin(half) / angle, 1/2 where the angle is 0
  return torch.cat([half.cos(), scale * vector], dim=-1)


def turn(q: Tensor, vector: Tensor) -> Tensor:
  """Return vectors [..., 3] turned by unit quaternions `q` [..., 4]: from the body's axes to the world's."""
  w, axis = q[..., :1], q[..., 1:]
  twice = 2.0 * cross(axis, vector)
  return vector + w * twice + cross(axis, twice)


def cross(a: Tensor, b: Tensor) -> Tensor:
  """Return the cross products [..., 3] of vectors `a` and `b` [..., 3]."""
  (ax, ay, az), (bx, by, bz) = a.unbind(-1), b.unbind(-1)
  return torch.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]).movedim(0, -1)


def yaw(q: Tensor) -> Tensor:
  """Return the rotations about the world's z axis [..., 4] that are nearest to unit quaternions [..., 4]."""
  norm = torch.hypot(q[..., 0], q[..., 3]).clamp(min=1e-8)
  zero = torch.zeros_like(norm)
  return torch.stack([q[..., 0] / norm, zero, zero, q[..., 3] / norm], -1)
