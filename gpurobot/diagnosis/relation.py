"""Relation of two signals with alike columns: order, signs, scales and offsets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpurobot.deploy.on_robot import Floats

STILL = 1e-6  # deviation below which a column does not move
PLAIN = 0.9  # share of numbers that have to agree for equality; limits may change others


@dataclass(frozen=True)
class Relation:
  """How `y` arises from `x`: y[:, j] = scale[j] * x[:, order[j]] + offset[j], up to `rest`."""

  order: NDArray[np.int64]  # [columns]
  scale: Floats  # [columns]; 0 where y does not move
  offset: Floats  # [columns]
  rest: float  # deviation of what remains, relative to y's
  gain: float  # median magnitude of the scales

  @property
  def moved(self) -> list[int]:
    """Columns that come from another one."""
    return [j for j, i in enumerate(self.order) if i != j]

  @property
  def flipped(self) -> list[int]:
    """Columns with the other sign."""
    return [j for j, scale in enumerate(self.scale) if scale < 0]


def differs(x: Floats, y: Floats, tolerance: float = 2e-3) -> bool:
  """Return whether two signals [n, columns] differ in more than a few numbers of a column."""
  return bool(((np.abs(x - y) <= tolerance * (1 + np.abs(x))).mean(0) < PLAIN).any())


def relate(x: Floats, y: Floats, margin: float = 0.5) -> Relation:
  """Return the relation of two signals [n, columns] by least squares.

  A column comes from another one only if its own leaves a rest more than 1 / `margin` times as large.
  """
  a, b = x - x.mean(0), y - y.mean(0)
  sx, sy = a.std(0), b.std(0)
  moving = (sx > STILL)[:, None] & (sy > STILL)
  corr = np.where(moving, a.T @ b / len(x) / np.maximum(np.outer(sx, sy), STILL**2), 0)
  rest = np.sqrt(np.maximum(1 - corr**2, 1e-9))  # [of x, of y]
  own, best = np.diag(rest), rest.argmin(0)
  columns = np.arange(len(own))
  order = np.where(rest[best, columns] < margin * own, best, columns)
  found = corr[order, columns]
  scale = np.where(sx[order] > STILL, found * sy / np.maximum(sx[order], STILL), 0)
  negated = np.abs(y + x).max(0) < np.abs(y - x).max(0)
  scale = np.where((sy <= STILL) & (sx[order] <= STILL), np.where(negated, -1.0, 1.0), scale)
  offset = y.mean(0) - scale * x.mean(0)[order]
  left = float(np.sqrt((rest[order, columns] ** 2 * sy**2).sum() / max((sy**2).sum(), STILL**2)))
  return Relation(order, scale, offset, left, float(np.median(np.abs(scale))))


def rms(x: Floats) -> float:
  """Return the root of the mean square."""
  return float(np.sqrt(np.mean(np.square(x))))
