"""Friction forces of one contact that stop its slip, as far as its normal force allows."""

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.ball import inverse_pivots, smallest_in_ball
from physics.algebra.spatial import MINVAL, dot, total
from physics.trace.trace import Number, Program, Truth, clip, maximum, where

CLOSE = 1e-10  # rise of cost that counts as none
LEAST = 1e-10  # response that a row has at least
SINGULAR = 1e-10  # determinant of up to three rows, or pivot of five, below which they are singular


@dataclass(frozen=True)
class Friction:
  """A contact's rows of friction: how their residuals answer to their forces."""

  response: Sequence[Sequence[Number]]  # J M^-1 J^T [n, n]
  residual: Sequence[Number]  # J qacc - aref at the forces now [n]
  scale: Sequence[Number] = ()  # coefficients of friction, which scale the rows [n]; 0: there is none

  def rise(self, change: Sequence[Number]) -> Number:
    """Return the rise of the cost of slipping that a change of the forces [n] makes."""
    ends = [r + 0.5 * dot(row, change) for r, row in zip(self.residual, self.response, strict=True)]
    return dot(ends, change)


def stick_in_turn(block: Friction, force: Sequence[Number], grip: Sequence[Number]) -> list[Number]:
  """Return the forces [n] that bring the residuals nearest to zero, one row after the other."""
  found: list[Number] = []
  for k, (response, old, most) in enumerate(zip(block.response, force, grip, strict=True)):
    moved = [response[j] * (new - was) for j, (new, was) in enumerate(zip(found, force, strict=False))]
    residual = total([block.residual[k], *moved])
    new = clip(old - residual / maximum(response[k], MINVAL), -most, most)
    found.append(where(response[k] < MINVAL, 0.0, new))
  return found


def stick_together(program: Program, block: Friction, force: Sequence[Number], grip: Number) -> list[Number]:
  """Return the forces [n] that bring the residuals nearest to zero, all together.

  As in MuJoCo, singular responses leave the forces as they are, unless none would be better.
  """
  still = [residual - dot(row, force) for row, residual in zip(block.response, block.residual, strict=True)]
  response = [list(row) for row in block.response]
  for k, scale in enumerate(block.scale):
    response[k][k] = where(response[k][k] <= LEAST * (scale * scale), 1.0, response[k][k])
  found = smallest_in_ball(program, response, still, grip)
  acts = _is_regular(block) & (grip >= MINVAL)
  found = [where(acts, f, 0.0) for f in found]
  better = block.rise([a - b for a, b in zip(found, force, strict=True)]) <= CLOSE
  return [where(better, a, b) for a, b in zip(found, force, strict=True)]


def _is_regular(block: Friction) -> Truth:
  """Return whether MuJoCo takes the responses for regular (`mju_QCQP2`, `mju_QCQP3`, `mju_QCQP`).

  A planar arm's may be, though it has no response across its plane: its rows have LEAST there.
  """
  response = [list(row) for row in block.response]
  for k, scale in enumerate(block.scale):
    least = where(scale > 0.0, LEAST * (scale * scale), 1.0)
    response[k][k] = maximum(where(scale > 0.0, response[k][k], 1.0), least)
  inverse = inverse_pivots(response)
  is_positive, product, largest = inverse[0] > 0.0, inverse[0], inverse[0]
  for each in inverse[1:]:
    is_positive, product, largest = is_positive & (each > 0.0), product * each, maximum(largest, each)
  has_all = block.scale[-1] > 0.0 if len(block.scale) > 3 else False
  return is_positive & (SINGULAR * where(has_all, largest, product) <= 1.0)
