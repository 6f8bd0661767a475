"""Operational-space control: joint torques for a desired acceleration of a point (Khatib 1987).

The last dimension of matrices and vectors is the environment, as in the memory of the simulation. Every
operation then runs over long rows, and elimination handles the small matrices of all environments at once.
"""

import torch
from torch import Tensor

# Added to the diagonal of the inverse inertia of the point [1/kg, 1/(kg m^2)]. It is a few percent of the
# usual values, and keeps torques finite near the singularity of a stretched arm.
SOFTNESS = 0.01


def jacobian(axis: Tensor, anchor: Tensor, point: Tensor) -> Tensor:
  """Return the Jacobian [6, n, N] of a point on a chain of n hinges: velocity, then angular velocity.

  Joint axes and anchors are [n, 3, N], the point is [3, N], all in world coordinates.
  """
  return torch.cat([torch.linalg.cross(axis, point - anchor, dim=1), axis], 1).transpose(0, 1)


def torques(mass: Tensor, jacobian: Tensor, acceleration: Tensor, posture: Tensor) -> Tensor:
  """Return joint torques [n, N] [N m], without gravity compensation and without Coriolis forces.

  The point gets the linear and angular `acceleration` [6, N]. In the null space of this task, the joints get
  the accelerations `posture` [n, N], in the metric of the mass matrix M [n, n, N]. With the Jacobian J
  [6, n, N], tau = M posture + J' L (acceleration - J posture), where L = (J M^-1 J' + softness)^-1 is the
  inertia of the point.
  """
  missing = acceleration - (jacobian * posture).sum(1)
  free = (mass * posture).sum(1)
  top = torch.cat([inverse_inertia(mass, jacobian), missing.unsqueeze(1)], 1)
  bottom = torch.cat([-jacobian.transpose(0, 1), free.unsqueeze(1)], 1)
  return eliminate(torch.cat([top, bottom]), 6).squeeze(1)


def inverse_inertia(mass: Tensor, jacobian: Tensor) -> Tensor:
  """Return the inverse inertia of the point, J M^-1 J' + softness [6, 6, N]; M [n, n, N], J [6, n, N]."""
  soft = SOFTNESS * torch.eye(6, device=mass.device).unsqueeze(2).expand(6, 6, mass.shape[2])
  top = torch.cat([mass, jacobian.transpose(0, 1)], 1)
  bottom = torch.cat([-jacobian, soft], 1)
  return eliminate(torch.cat([top, bottom]), len(mass))


def eliminate(matrix: Tensor, count: int) -> Tensor:
  """Return D - C A^-1 B of a matrix [A B; C D] [rows, columns, N], where A has `count` rows and columns.

  A must be positive definite: Gaussian elimination then needs no pivots.
  """
  for _ in range(count):
    factor = matrix[1:, :1] / matrix[:1, :1]
    matrix = torch.addcmul(matrix[1:, 1:], factor, matrix[:1, 1:], value=-1)
  return matrix
