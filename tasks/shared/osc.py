"""Operational-space control: torques by which a point of an arm accelerates as asked (Khatib 1987).

Matrices and vectors have the environment as their last dimension, as in the simulation's memory: every
operation then runs over long rows, and a small matrix is eliminated in all environments at once.
"""

import torch
from torch import Tensor

# Added to the inverse of the point's inertia [1/kg, 1/(kg m^2)]. It is a few percent of what that is in most
# poses, and keeps torques finite where the arm is stretched out.
SOFTNESS = 0.01


def jacobian(axis: Tensor, anchor: Tensor, point: Tensor) -> Tensor:
  """Return d(velocity, angular velocity of a point) / d(joint speeds) [6, n, N] of n hinges in a chain.

  Their axes and anchors are [n, 3, N], the point is [3, N], all in world coordinates.
  """
  return torch.cat([torch.linalg.cross(axis, point - anchor, dim=1), axis], 1).transpose(0, 1)


def torques(mass: Tensor, jacobian: Tensor, acceleration: Tensor, posture: Tensor) -> Tensor:
  """Return joint torques [n, N] beside those against gravity; those against Coriolis forces are left out.

  The point gets the linear and angular `acceleration` [6, N]. As far as that leaves freedom, joints get the
  accelerations `posture` [n, N], in the metric of the mass matrix [n, n, N]. With J of the point [6, n, N],
  tau = M posture + J' L (acceleration - J posture), L = (J M^-1 J' + softness)^-1 the inertia of the point.
  """
  missing = acceleration - (jacobian * posture).sum(1)
  free = (mass * posture).sum(1)
  top = torch.cat([inverse_inertia(mass, jacobian), missing.unsqueeze(1)], 1)
  bottom = torch.cat([-jacobian.transpose(0, 1), free.unsqueeze(1)], 1)
  return eliminate(torch.cat([top, bottom]), 6).squeeze(1)


def inverse_inertia(mass: Tensor, jacobian: Tensor) -> Tensor:
  """Return J M^-1 J' + softness [6, 6, N]: what a force and torque at the point make it accelerate by."""
  soft = SOFTNESS * torch.eye(6, device=mass.device).unsqueeze(2).expand(6, 6, mass.shape[2])
  top = torch.cat([mass, jacobian.transpose(0, 1)], 1)
  bottom = torch.cat([-jacobian, soft], 1)
  return eliminate(torch.cat([top, bottom]), len(mass))


def eliminate(matrix: Tensor, count: int) -> Tensor:
  """Return D - C A^-1 B of [A B; C D] [rows, columns, N], A being the first `count` rows and columns.

  A is positive definite: Gaussian elimination needs no pivots.
  """
  for _ in range(count):
    factor = matrix[1:, :1] / matrix[:1, :1]
    matrix = torch.addcmul(matrix[1:, 1:], factor, matrix[:1, 1:], value=-1)
  return matrix
