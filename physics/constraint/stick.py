"""Friction forces of one contact that stop its slip, as far as its normal force allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.ball import smallest_in_ball
from physics.algebra.spatial import MINVAL, dot, total
from physics.trace.trace import Number, Program, clip, maximum, negate, where

CLOSE = 1e-10  # rise of cost that counts as none


@dataclass(frozen=True)
class Friction:
  """A contact's rows of friction: how their residuals answer to their forces."""

  response: Sequence[Sequence[Number]]  # J M^-1 J^T [n, n]
  residual: Sequence[Number]  # J qacc - aref at the forces now [n]

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

  As in MuJoCo, a direction without response counts only if there is spin, and singular responses leave
  the forces as they are, unless none would be better.
  """
  still = [residual - dot(row, force) for row, residual in zip(block.response, block.residual, strict=True)]
  response = [list(row) for row in block.response]
  has_spin = response[2][2] >= MINVAL if len(response) > 2 else False
  for k in range(len(response)):
    is_missing = (response[k][k] < MINVAL) & (True if k > 1 else negate(has_spin))
    response[k][k] = where(is_missing, 1.0, response[k][k])
  found = smallest_in_ball(program, response, still, grip)
  found = [where(grip < MINVAL, 0.0, f) for f in found]
  better = block.rise([a - b for a, b in zip(found, force, strict=True)]) <= CLOSE
  return [where(better, a, b) for a, b in zip(found, force, strict=True)]
