"""Time integration: semi-implicit Euler with implicit joint damping."""

from __future__ import annotations

from physics.dynamics import TreeMatrix
from physics.kinematics import BALL, FREE
from physics.model import Model
from physics.spatial import Quaternion, Vector, dot
from physics.trace import Number, cos, number, sin, sqrt, where


def integrate_velocity(model: Model, M: TreeMatrix, qvel: list[Number], qacc: list[Number]) -> list[Number]:
  """Return the velocity [nv] after one time step.

  With joint damping B the step solves (M + h B) dv = h M qacc: the damping force is taken at the end of the
  step (MuJoCo's Euler integrator, manual chapter Computation, section Numerical integration).
  """
  h = model.timestep
  if model.eulerdamp and model.dof_damping.any():
    damped = M.add_diagonal([h * number(damping) for damping in model.dof_damping])
    qacc = damped.factor().solve(M @ qacc)
  return [v + h * a for v, a in zip(qvel, qacc, strict=True)]


def integrate_position(model: Model, qpos: list[Number], qvel: list[Number]) -> list[Number]:
  """Return the position [nq] after one time step at constant velocity."""
  h = model.timestep
  result = list(qpos)
  for joint in range(model.njnt):
    at, dof, kind = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), model.jnt_type[joint]
    if kind == FREE:
      result[at : at + 3] = [qpos[at + k] + h * qvel[dof + k] for k in range(3)]
      at, dof = at + 3, dof + 3
    if kind in (FREE, BALL):
      result[at : at + 4] = _rotate(qpos[at : at + 4], Vector(*qvel[dof : dof + 3]), h)
    else:
      result[at] = qpos[at] + h * qvel[dof]
  return result


def _rotate(components: list[Number], velocity: Vector, h: float) -> list[Number]:
  """Return the unit quaternion after turning for a time h [s] at a velocity [rad/s] in body axes."""
  square = dot(velocity, velocity)
  still = square < 1e-24
  speed = sqrt(where(still, 1.0, square))
  half = speed * (0.5 * h)
  sine_over_speed = where(still, 0.5 * h, sin(half) / speed)
  turn = Quaternion(where(still, 1.0, cos(half)), velocity * sine_over_speed)
  return list(Quaternion.normalize((Quaternion.normalize(components) * turn).components).components)
