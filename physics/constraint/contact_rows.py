"""The rows of a contact: directions at its point, along and about which it pushes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from physics.algebra.spatial import FLAT, ZERO, Force, Matrix, Motion, Vector, cross, dot
from physics.trace.compact import Entry
from physics.trace.trace import Number


@dataclass(frozen=True)
class ContactRows:
  """A contact's rows at its point: forces along `linear`, torques about `angular`, scaled by friction."""

  linear: list[Vector]  # [1 or 3] normal and tangents
  angular: list[Vector]  # [0, 1 or 3] spin and rolling

  @staticmethod
  def of(contact: Entry, first: Vector, dim: int) -> "ContactRows":
    """Return the `dim` rows of a contact with first tangent `first`, scaled by its friction."""
    normal = Vector(*contact.vector("normal"))
    if dim == 1:
      return ContactRows([normal], [])
    second = cross(normal, first) * contact["aspect"]
    angular = [normal * contact["spin"]] if dim > 3 else []
    if dim > 4:
      angular += [first * contact["roll"], second * contact["cross_roll"]]
    return ContactRows([normal, first, second], angular)

  def along(self, motion: Motion) -> list[Number]:
    """Return the motion of the contact's point along every row [dim]."""
    return [dot(v, motion.linear) for v in self.linear] + [dot(w, motion.angular) for w in self.angular]

  def force(self, values: Sequence[Number]) -> Force:
    """Return the force at the contact's point, and the torque, of one value per row [dim]."""
    force, torque = ZERO, ZERO
    for axis, value in zip(self.linear, values, strict=False):
      force = force + axis * value
    for axis, value in zip(self.angular, values[len(self.linear) :], strict=True):
      torque = torque + axis * value
    return Force(torque, force)

  def blocks(self, hessian: Mapping[tuple[int, int], Number]) -> tuple[Matrix, Matrix, Matrix]:
    """Return sum h[k, l] r_k r_l^T as blocks: linear, coupling (angular to linear), angular."""

    def block(left: list[Vector], right: list[Vector], at: tuple[int, int]) -> Matrix:
      total = FLAT
      for k, a in enumerate(left, start=at[0]):
        weighted = ZERO
        for m, b in enumerate(right, start=at[1]):
          weighted = weighted + b * hessian.get((min(k, m), max(k, m)), 0.0)
        total = total + Matrix(*(weighted * x for x in a))
      return total

    n = len(self.linear)
    return (
      block(self.linear, self.linear, (0, 0)),
      block(self.angular, self.linear, (n, 0)),
      block(self.angular, self.angular, (n, n)),
    )


def row_scales(contact: Entry, dim: int) -> list[Number]:
  """Return the coefficients of friction that scale the rows but the normal [dim - 1]; missing rows have 0."""
  first, second = contact["friction"], contact["friction"] * contact["aspect"]
  scales = [first, second]
  if dim > 3:
    scales.append(contact["spin"])
  if dim > 4:
    scales += [first * contact["roll"], second * contact["cross_roll"]]
  return scales
