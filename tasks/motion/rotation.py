"""Quaternions (w, x, y, z) on the host, arrays [..., 4] in float64; `tasks/shared/quat.py` is for tensors."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def multiply(one: Floats, other: Floats) -> Floats:
  """Return the products [..., 4]: the rotation `other`, followed by `one`."""
  w, v = one[..., :1], one[..., 1:]
  other_w, other_v = other[..., :1], other[..., 1:]
  scalar = w * other_w - (v * other_v).sum(-1, keepdims=True)
  return np.concatenate([scalar, w * other_v + other_w * v + np.cross(v, other_v)], -1)


def difference(one: Floats, other: Floats) -> Floats:
  """Return the rotation vectors [..., 3] [rad], in body axes, that turn `one` into `other`; at most pi."""
  turn = multiply(one * [1.0, -1.0, -1.0, -1.0], other)
  turn *= np.where(turn[..., :1] < 0, -1.0, 1.0)  # both signs are the same rotation
  sine = np.linalg.norm(turn[..., 1:], axis=-1, keepdims=True)
  return turn[..., 1:] * 2.0 * np.arctan2(sine, turn[..., :1]) / np.maximum(sine, 1e-300)


def exponential(vector: Floats) -> Floats:
  """Return the quaternions [..., 4] of rotation vectors [..., 3] [rad]."""
  half = 0.5 * np.linalg.norm(vector, axis=-1, keepdims=True)
  return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * vector], -1)


def rotate(turn: Floats, vector: Floats) -> Floats:
  """Return vectors [..., 3] turned by quaternions [..., 4]."""
  twice = 2.0 * np.cross(turn[..., 1:], vector)
  return vector + turn[..., :1] * twice + np.cross(turn[..., 1:], twice)
