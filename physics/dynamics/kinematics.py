"""Forward kinematics: poses, joint axes and velocities of bodies, each tree about its own root.

Positions are relative to the origin of the body's tree, which is the present position of its root body. So
the state of a robot a kilometre from the world's origin has the same relative precision as one at the origin.
"""

from dataclasses import dataclass

import numpy as np

from physics.algebra.spatial import (
  AXES,
  STILL,
  ZERO,
  Matrix,
  Motion,
  Quaternion,
  Vector,
  cross,
  cross_motion,
  vector,
)
from physics.dynamics.bodies import bodies, dofs, joints
from physics.dynamics.reference import reference_bodies
from physics.model.model import Model
from physics.trace.each import Each, alike, entry, follow, repeating, stored
from physics.trace.rows import rows
from physics.trace.trace import Number, Program, number

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


@dataclass(frozen=True)
class Poses:
  """The poses of all bodies, and the joint axes of all degrees of freedom."""

  origin: list[
    Vector
  ]  # [nbody] world position of the body's tree origin [m]; the world's own for static bodies
  position: list[Vector]  # [nbody] relative to the tree origin [m]
  quaternion: list[Quaternion]  # [nbody]
  rotation: list[Matrix]  # [nbody] body to world
  cdof: list[Motion]  # [nv] motion of the body at unit velocity, about the tree origin
  reference: list[Vector]  # [nbody] point of the body's inertia, relative to the tree origin [m]
  near_cdof: list[Motion]  # [nv] as `cdof`, about the body's reference

  @property
  def program(self) -> Program | None:
    """The program with loops that read and write the poses; None if these are lists."""
    return repeating(self.cdof)

  def world(self, body: Each, local: Vector = ZERO) -> Vector:
    """Return the world position [m] of a point fixed in a body."""
    return self.origin[body] + self.relative(body, local)

  def relative(self, body: Each, local: Vector) -> Vector:
    """Return the position [m] of a point fixed in a body, relative to the tree origin."""
    return self.position[body] + self.rotation[body] @ local


@dataclass(frozen=True)
class Mocap:
  """The poses of mocap bodies, which are set from outside; their velocities are zero."""

  position: list[Number]  # [3 nmocap] [m]
  quaternion: list[Number]  # [4 nmocap], of any length

  def pose(self, index: int) -> tuple[Vector, Quaternion]:
    """Return position and rotation of a mocap body by its number among them."""
    turn = Quaternion.normalize(self.quaternion[4 * index : 4 * index + 4])
    return Vector(*self.position[3 * index : 3 * index + 3]), turn


def poses(model: Model, qpos: list[Number], mocap: Mocap | None = None) -> Poses:
  """Return the poses for joint positions [nq] (MuJoCo's `mj_kinematics`, `mj_comPos`).

  Mocap bodies are where `mocap` says, or (None) where the model has them.
  """
  p = _unmoved(model, repeating(qpos))
  for body in bodies(model, p.program):
    parent, driven = follow(model.body_parentid, body), alike(model.body_mocapid, body)
    is_root = alike(model.body_treeid, body) >= 0 and alike(model.body_treeid, parent) < 0
    local = vector(entry(model.body_pos, body))
    turn = Quaternion.constant(entry(model.body_quat, body))
    if mocap and driven >= 0:
      local, turn = mocap.pose(driven)
    start = p.world(parent, local) if is_root else p.relative(parent, local)
    position, quaternion, axes = _move_joints(model, body, qpos, start, p.quaternion[parent] * turn)
    if is_root:
      axes = [(kind, axis, anchor - position) for kind, axis, anchor in axes]
      p.origin[body] = position
      position = ZERO
    else:
      p.origin[body] = p.origin[parent]
    p.position[body] = position
    p.quaternion[body] = quaternion
    p.rotation[body] = quaternion.matrix()
    p.reference[body] = near = p.position[follow(reference_bodies(model), body)]
    for dof, (kind, axis, anchor) in zip(dofs(model, body), axes, strict=True):
      p.cdof[dof] = _unit_motion(kind, axis, anchor)
      p.near_cdof[dof] = _unit_motion(kind, axis, anchor - near)
  return p


def _unmoved(model: Model, program: Program | None) -> Poses:
  """Return poses that only the world has so far."""
  p = Poses(
    rows(program, Vector, model.nbody),
    rows(program, Vector, model.nbody),
    rows(program, Quaternion, model.nbody),
    rows(program, Matrix, model.nbody),
    rows(program, Motion, model.nv),
    rows(program, Vector, model.nbody),
    rows(program, Motion, model.nv),
  )
  p.origin[0] = p.position[0] = p.reference[0] = ZERO
  p.quaternion[0], p.rotation[0] = Quaternion.constant((1, 0, 0, 0)), Matrix(*AXES)
  return p


def _unit_motion(kind: int, axis: Vector, anchor: Vector) -> Motion:
  """Return a body's motion at unit velocity of a degree of freedom (SLIDE, HINGE) about a point."""
  return Motion(ZERO, axis) if kind == SLIDE else Motion(axis, cross(anchor, axis))


def _move_joints(
  model: Model, body: Each, qpos: list[Number], position: Vector, quaternion: Quaternion
) -> tuple[Vector, Quaternion, list[tuple[int, Vector, Vector]]]:
  """Apply a body's joints in order; return its pose and every dof's kind (SLIDE, HINGE), axis and anchor."""
  axes: list[tuple[int, Vector, Vector]] = []
  for joint in joints(model, body):
    at, kind = follow(model.jnt_qposadr, joint), alike(model.jnt_type, joint)
    if kind == FREE:
      values = [qpos[at + k] for k in range(7)]
      position, quaternion = Vector(*values[:3]), Quaternion.normalize(values[3:])
      axes += [(SLIDE, axis, position) for axis in AXES]
      axes += [(HINGE, quaternion.matrix().column(k), position) for k in range(3)]
      continue
    local, pivot = vector(entry(model.jnt_axis, joint)), vector(entry(model.jnt_pos, joint))
    anchor = position + quaternion.matrix() @ pivot
    if kind == SLIDE:
      axis = quaternion.matrix() @ local
      axes.append((SLIDE, axis, anchor))
      position = position + axis * (qpos[at] - number(entry(model.qpos0, at)))
      continue
    if kind == BALL:
      quaternion = quaternion * Quaternion.normalize([qpos[at + k] for k in range(4)])
      axes += [(HINGE, quaternion.matrix().column(k), anchor) for k in range(3)]
    else:
      quaternion = quaternion * Quaternion.about(local, qpos[at] - entry(model.qpos0, at))
      axes.append((HINGE, quaternion.matrix() @ local, anchor))
    position = anchor - quaternion.matrix() @ pivot
  return position, quaternion, axes


def way_from(model: Model, p: Poses, qpos: list[Number], ancestor: int, body: int, local: Vector) -> Vector:
  """Return the vector [m] from the origin of a body's ancestor to a point fixed in the body.

  It is added up along the chain between them: the difference of their positions would have the rounding of
  the distance to the tree's origin.
  """
  way = p.rotation[body] @ local
  while body != ancestor:
    parent = int(model.body_parentid[body])
    turn = Quaternion.constant(entry(model.body_quat, body))
    start, unturned = p.rotation[parent] @ vector(entry(model.body_pos, body)), p.quaternion[parent] * turn
    step, _, _ = _move_joints(model, body, qpos, start, unturned)
    way, body = way + step, parent
  return way


def dofs_above(model: Model, body: int) -> list[int]:
  """Return the degrees of freedom that move a body, from the root on."""
  dofs: list[int] = []
  while body > 0:
    first = int(model.body_dofadr[body])
    dofs = [*range(first, first + int(model.body_dofnum[body])), *dofs]
    body = int(model.body_parentid[body])
  return dofs


def point_jacobian(model: Model, p: Poses, body: int, point: Vector) -> dict[int, Vector]:
  """Return the velocity of a point of a body at unit velocity of each dof that moves it (`mj_jac`).

  `point` is relative to the origin of the body's tree. The Jacobian of its rotation is `p.cdof[dof].angular`.
  """
  return {dof: p.cdof[dof].at(point) for dof in dofs_above(model, body)}


def dof_groups(model: Model, body: Each) -> list[list[Each]]:
  """Return a body's dofs as they move together: a ball's three, a free joint's three and three."""
  groups = []
  for joint in joints(model, body):
    dof, kind = follow(model.jnt_dofadr, joint), alike(model.jnt_type, joint)
    if kind == FREE:
      groups.append([dof + k for k in range(3)])
      dof += 3
    groups.append([dof + k for k in range(3 if kind in (FREE, BALL) else 1)])
  return groups


def joint_motion(p: Poses, dofs: list[Each], qvel: list[Number]) -> Motion:
  """Return the motion that some degrees of freedom, at the velocities `qvel` [nv], add to a body's."""
  motion = STILL
  for dof in dofs:
    motion = motion + p.cdof[dof] * qvel[dof]
  return motion


def propagate(model: Model, p: Poses, x: list[Number]) -> list[Motion]:
  """Return S x of every body: the velocity, or acceleration without bias, that joint rates [nv] give it."""
  motion, x = rows(p.program, Motion, model.nbody), stored(p.program, x)
  motion[0] = STILL
  for body in bodies(model, p.program):
    total = motion[follow(model.body_parentid, body)]
    for group in dof_groups(model, body):
      total = total + joint_motion(p, group, x)
    motion[body] = total
  return motion


def velocities(model: Model, p: Poses, qvel: list[Number]) -> tuple[list[Motion], list[Motion]]:
  """Return velocity and bias acceleration of every body [nbody] (MuJoCo's `mj_comVel`).

  The bias acceleration includes gravity, but no joint accelerations.
  """
  velocity, acceleration = (rows(p.program, Motion, model.nbody) for _ in range(2))
  velocity[0], acceleration[0] = STILL, Motion(ZERO, -vector(np.asarray(model.gravity)))
  for body in bodies(model, p.program):
    parent = follow(model.body_parentid, body)
    v, a = velocity[parent], acceleration[parent]
    for group in dof_groups(model, body):
      joint = joint_motion(p, group, qvel)
      a = a + cross_motion(v, joint)
      v = v + joint
    velocity[body], acceleration[body] = v, a
  return velocity, acceleration
