"""The pipeline of a control step, in MuJoCo's order, traced for one model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from physics.actuation import actuator_forces
from physics.articulated import welded_inertias
from physics.collision.moving import find_moving_contacts, moving_pairs
from physics.collision.world import find_world_contacts, world_pairs
from physics.constraint import JointRows, joint_rows
from physics.contact import MovingContacts, WorldContacts
from physics.dynamics import (
  TreeMatrix,
  bias_forces,
  body_inertias,
  composite_inertias,
  mass_matrix,
  tree_centers,
)
from physics.integrate import integrate_position, integrate_velocity
from physics.kinematics import Poses, poses, velocities
from physics.layout import COUNTERS, STATE, Layout
from physics.model import Model
from physics.passive import passive_forces
from physics.solver import Bodies, Problem, solve
from physics.spatial import ZERO, Force, Inertia, Motion, Vector, cross
from physics.trace import Array, Mask, Number, Program

MOVING_CAPACITY = 16  # contacts between moving bodies that one environment can hold


@dataclass(frozen=True)
class Memory:
  """The state in group memory while substeps run."""

  qpos: Array
  qvel: Array
  qacc: Array  # also the next substep's warm start
  dropped: Array  # contacts without a slot, summed over substeps


@dataclass(frozen=True)
class Smooth:
  """What one state gives before constraints."""

  poses: Poses
  inertias: list[Inertia]
  composite: list[Inertia]
  velocity: list[Motion]
  M: TreeMatrix
  bias: list[Number]
  passive: list[Number]
  actuator: list[Number]

  @property
  def force(self) -> list[Number]:
    """Joint forces [nv] without those of constraints: M qacc_smooth."""
    return [p + a - b for p, a, b in zip(self.passive, self.actuator, self.bias, strict=True)]


@dataclass(frozen=True)
class Contacts:
  """Contacts found in one state; None where the model has no such pairs."""

  world: WorldContacts | None
  moving: MovingContacts | None

  @property
  def kinds(self) -> list[WorldContacts | MovingContacts]:
    """Those that exist."""
    return [kind for kind in (self.world, self.moving) if kind]


def trace_step(model: Model, layout: Layout, moving_capacity: int = MOVING_CAPACITY) -> Program:
  """Trace `substeps` time steps in one program.

  Parameters: substeps; stride, the rows from one substep's controls to the next one's (0: held); integrate
  (0: the state stays, derived quantities are computed). Arrays: state `[layout.rows, env]`, control `[row,
  env]`.
  """
  program = Program()
  substeps, stride, integrate = (program.parameter(name) for name in ("substeps", "stride", "integrate"))
  selected = program.read_memory("state", layout.blocks["mask"].start) > 0.5
  qpos, qvel, qacc = (_load_state(program, layout, name) for name in STATE)
  memory = Memory(qpos, qvel, qacc, program.variable(0.0))
  with program.loop(substeps) as substep:
    program.break_if_none(selected)
    ctrl: list[Number] = [program.read_memory("control", substep * stride + i) for i in range(model.nu)]
    smooth = smooth_dynamics(model, memory.qpos.read(), memory.qvel.read(), ctrl)
    contacts = detect_contacts(program, model, smooth, memory, moving_capacity)
    iterations = accelerate(program, model, smooth, contacts, memory)
    with program.when_equal(substep + 1, substeps):
      Outputs(program, model, layout, selected).write(smooth, contacts, memory, iterations)
    with program.when_less(0, integrate):
      advance(model, smooth.M, memory)
  with program.when_less(0, integrate):
    for name, array in zip(STATE, (memory.qpos, memory.qvel, memory.qacc), strict=True):
      for i in range(len(array)):
        program.write_memory("state", layout.blocks[name].start + i, array[i], selected)
  return program.finish()


def _load_state(program: Program, layout: Layout, name: str) -> Array:
  block = layout.blocks[name]
  array = program.array(block.rows, prefix=name)
  array.fill([program.read_memory("state", block.start + i) for i in range(block.rows)])
  return array


def smooth_dynamics(model: Model, qpos: list[Number], qvel: list[Number], ctrl: list[Number]) -> Smooth:
  """Compute poses, velocities, inertia and all forces but those of constraints."""
  p = poses(model, qpos)
  velocity, acceleration = velocities(model, p, qvel)
  inertias = body_inertias(model, p)
  composite = composite_inertias(model, inertias)
  M = mass_matrix(model, composite, p.cdof)
  bias = bias_forces(model, p, inertias, velocity, acceleration)
  passive = passive_forces(model, qpos, qvel)
  return Smooth(p, inertias, composite, velocity, M, bias, passive, actuator_forces(model, qpos, qvel, ctrl))


def detect_contacts(
  program: Program, model: Model, smooth: Smooth, memory: Memory, capacity: int
) -> Contacts:
  """Find contacts and prepare their rows."""
  p, world, moving = smooth.poses, None, None
  if pairs := world_pairs(model):
    geoms = {geom for pair in pairs for geom in (pair.geom1, pair.geom2)}
    bodies = sorted({int(model.body_weldid[model.geom_bodyid[geom]]) for geom in geoms} - {0})
    world = WorldContacts(model, p, bodies, find_world_contacts(program, model, p, bodies))
    world.prepare(smooth.velocity)
  if (selected := moving_pairs(model)).pairs:
    found = find_moving_contacts(program, model, p, selected, capacity)
    moving = MovingContacts(model, p, selected, found)
    moving.prepare(memory.qvel.read())
    memory.dropped[0] = memory.dropped[0] + found.dropped[0]
  return Contacts(world, moving)


def accelerate(program: Program, model: Model, smooth: Smooth, contacts: Contacts, memory: Memory) -> Array:
  """Set memory.qacc to the constrained acceleration; return the solver's iterations per lane."""
  rows = joint_rows(model, memory.qpos.read(), memory.qvel.read())
  if not rows and not contacts.kinds:
    memory.qacc.fill(smooth.M.factor().solve(smooth.force))
    return program.variable(0.0)
  if not model.warmstart_enabled:
    memory.qacc.fill([0.0] * model.nv)
  bodies = Bodies(model, smooth.poses, welded_inertias(model, smooth.inertias))
  joints = JointRows(program, model.nv, rows)
  problem = Problem(bodies, smooth.M, smooth.force, joints, contacts.world, contacts.moving)
  return solve(program, problem, memory.qacc, model.iterations)


def advance(model: Model, M: TreeMatrix, memory: Memory) -> None:
  """Move the state one time step on."""
  qvel = integrate_velocity(model, M, memory.qvel.read(), memory.qacc.read())
  memory.qpos.fill(integrate_position(model, memory.qpos.read(), qvel))
  memory.qvel.fill(qvel)


class Outputs:
  """Writes the derived quantities that the layout has rows for, in the selected lanes."""

  def __init__(self, program: Program, model: Model, layout: Layout, selected: Mask) -> None:
    self.program, self.model, self.layout, self.selected = program, model, layout, selected

  def write(self, smooth: Smooth, contacts: Contacts, memory: Memory, iterations: Array) -> None:
    """Write all of them."""
    p, qacc = smooth.poses, memory.qacc.read()
    bodies = range(self.model.nbody)
    self._put("qacc", qacc)
    self._put("xpos", (x for body in bodies for x in p.world(body)))
    self._put("xquat", (x for body in bodies for x in p.quaternion[body].components))
    self._put("qfrc_bias", smooth.bias)
    self._put("qfrc_passive", smooth.passive)
    self._put("qfrc_actuator", smooth.actuator)
    self._put("qfrc_smooth", smooth.force)
    if "qM" in self.layout:
      entries = smooth.M.entries
      full = [entries.get((max(i, j), min(i, j)), 0.0) for i in range(smooth.M.n) for j in range(smooth.M.n)]
      self._put("qM", full)
    if "qacc_smooth" in self.layout:
      self._put("qacc_smooth", smooth.M.factor().solve(smooth.force))
    if "qfrc_constraint" in self.layout:
      self._put("qfrc_constraint", (a - f for a, f in zip(smooth.M @ qacc, smooth.force, strict=True)))
    if "cvel" in self.layout:
      self._put("cvel", self._velocities(smooth))
    if "cfrc_ext" in self.layout:
      self._put("cfrc_ext", self._contact_forces(smooth, contacts))
    counts = [kind.count() for kind in contacts.kinds]
    self._put("contact_count", [sum(counts[1:], counts[0]) if counts else 0.0])
    self._put("overflow", [memory.dropped[0]])
    self._put("solver_niter", [iterations[0]])

  def _put(self, name: str, values: Iterable[Number]) -> None:
    if name in self.layout:
      start = self.layout.blocks[name].start
      for i, value in enumerate(values):
        self.program.write_memory("state", start + i, value, self.selected, integer=name in COUNTERS)

  def _velocities(self, smooth: Smooth) -> list[Number]:
    """Return every body's angular velocity and linear one at its tree's centre of mass (MuJoCo's `cvel`)."""
    centers = self._centers(smooth)
    return [x for body, v in enumerate(smooth.velocity) for x in (*v.angular, *v.at(centers[body]))]

  def _contact_forces(self, smooth: Smooth, contacts: Contacts) -> list[Number]:
    """Return contact torque and force on every body, at its tree's centre of mass (MuJoCo's `cfrc_ext`)."""
    owners = {int(self.model.geom_bodyid[g]) for pair in self.model.pairs for g in (pair.geom1, pair.geom2)}
    index = {body: i for i, body in enumerate(sorted(b for b in owners if self.model.body_treeid[b] >= 0))}
    sums = self.program.array(6 * len(index))
    sums.fill([0.0] * len(sums))
    for kind in contacts.kinds:
      kind.body_forces(sums, index)
    centers, result = self._centers(smooth), list[Number]([0.0]) * (6 * self.model.nbody)
    for body, i in index.items():
      force = Force(Vector(*sums.read(6 * i, 3)), Vector(*sums.read(6 * i + 3, 3)))
      result[6 * body : 6 * body + 6] = [*(force.torque - cross(centers[body], force.force)), *force.force]
    return result

  def _centers(self, smooth: Smooth) -> list[Vector]:
    """Return the centre of mass of every body's tree, relative to the tree origin; zero for static bodies."""
    centers = tree_centers(self.model, smooth.composite)
    moves = self.model.body_treeid >= 0
    return [centers[int(root)] if moves[body] else ZERO for body, root in enumerate(self.model.body_rootid)]
