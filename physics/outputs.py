"""Outputs: the derived quantities that a simulation writes, as MuJoCo reports them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from physics.algebra.spatial import Motion, total
from physics.derived import Derived
from physics.dynamics.frame import BODY, GEOM, SITE, XBODY, Frame, frame
from physics.sensor import sensordata
from physics.state.layout import COUNTERS, Layout
from physics.state.reduction import REDUCTIONS
from physics.trace.each import Each
from physics.trace.rows import flattened
from physics.trace.trace import Array, Mask, Number, Program

Values = Callable[[Derived], Iterable[Number]]


class Outputs:
  """The writer of the derived quantities that the layout has rows for, in the selected lanes."""

  def __init__(self, program: Program, layout: Layout, selected: Mask) -> None:
    self.program, self.layout, self.selected = program, layout, selected
    self.reductions = {
      name: REDUCTIONS[reduction](program, layout.blocks[name].rows)
      for name, reduction in layout.outputs.items()
      if reduction in REDUCTIONS
    }

  def gather(self, names: Sequence[str], derived: Derived) -> None:
    """Add a time step's values to the outputs that are reduced over time steps."""
    for name in names:
      if name in self.reductions:
        self.reductions[name].add(list(VALUES[name](derived)))

  def write(self, names: Sequence[str], derived: Derived) -> None:
    """Write the named quantities, in the last time step."""
    for name in names:
      values = self.reductions[name].result() if name in self.reductions else VALUES[name](derived)
      start = self.layout.blocks[name].start
      if isinstance(values, Array):
        with self.program.loop(len(values)) as row:
          self.program.write_memory("state", row + start, values[row], self.selected)
        continue
      for i, value in enumerate(values):
        self.program.write_memory("state", start + i, value, self.selected, integer=name in COUNTERS)


def _frames(kind: int, field: str, read: Callable[[Frame], Sequence[Number]]) -> Values:
  """Return what `read` gives for the frames of all elements of a kind; the model's `field` counts them."""

  def values(derived: Derived) -> Iterable[Number]:
    model, poses = derived.model, derived.poses
    return flattened(derived.program, lambda i: read(frame(model, poses, kind, i)), getattr(model, field))

  return values


def _position(at: Frame) -> Sequence[Number]:
  return at.world


def _matrix(at: Frame) -> Sequence[Number]:
  return at.rotation.components


def _mass_matrix(derived: Derived) -> Iterable[Number]:
  entries, n = derived.smooth.M.entries, derived.model.nv
  return (entries.get((max(i, j), min(i, j)), 0.0) for i in range(n) for j in range(n))


def _constraint_forces(derived: Derived) -> Iterable[Number]:
  """Return J^T f, which is zero where no constraint acts, unlike the rounding of M qacc less other forces."""
  everywhere = derived.program.variable(True, Mask)[0]
  kinds = [derived.evaluation.joints, *derived.evaluation.contacts.kinds]
  return [total(parts) for parts in zip(*(kind.force(everywhere) for kind in kinds), strict=True)]


def _contact_count(derived: Derived) -> Iterable[Number]:
  counts = [kind.count() for kind in derived.evaluation.contacts.kinds]
  return [sum(counts[1:], counts[0]) if counts else 0.0]


def _about_centers(motions: list[Motion], derived: Derived) -> Iterable[Number]:
  """Return motions of all bodies with the linear part at MuJoCo's reference."""
  centers = derived.centers
  return flattened(
    derived.program, lambda body: (*motions[body].angular, *motions[body].at(centers[body])), len(centers)
  )


def _inertias(derived: Derived) -> Iterable[Number]:
  """Return inertias about MuJoCo's reference: xx, yy, zz, xy, xz, yz, first moment, mass."""
  inertias, centers = derived.inertias, derived.centers

  def make(body: Each) -> Sequence[Number]:
    moved = inertias[body].about(centers[body])
    return (*moved.six, *moved.moment, moved.mass)

  return flattened(derived.program, make, len(centers))


def _external_forces(derived: Derived) -> Iterable[Number]:
  forces, centers = derived.external_forces, derived.centers
  return flattened(derived.program, lambda body: forces[body].moved(-centers[body]).components, len(centers))


VALUES: dict[str, Values] = {
  "xpos": _frames(XBODY, "nbody", _position),
  "xmat": _frames(XBODY, "nbody", _matrix),
  "xquat": lambda d: flattened(d.program, lambda i: d.poses.quaternion[i].components, d.model.nbody),
  "xipos": _frames(BODY, "nbody", _position),
  "ximat": _frames(BODY, "nbody", _matrix),
  "geom_xpos": _frames(GEOM, "ngeom", _position),
  "geom_xmat": _frames(GEOM, "ngeom", _matrix),
  "site_xpos": _frames(SITE, "nsite", _position),
  "site_xmat": _frames(SITE, "nsite", _matrix),
  "subtree_com": lambda d: (x for body, c in enumerate(d.subtree_centers) for x in d.poses.origin[body] + c),
  "subtree_linvel": lambda d: chain.from_iterable(velocity for velocity, _ in d.subtree_momenta),
  "subtree_angmom": lambda d: chain.from_iterable(momentum for _, momentum in d.subtree_momenta),
  "cinert": _inertias,
  "cvel": lambda d: _about_centers(d.smooth.velocity, d),
  "cacc": lambda d: _about_centers(d.accelerations, d),
  "cfrc_ext": _external_forces,
  "cfrc_int": lambda d: chain.from_iterable(f.components for f in d.internal_forces),
  "qM": _mass_matrix,
  "qacc": lambda d: d.qacc,
  "qacc_smooth": lambda d: d.unconstrained,
  "qfrc_bias": lambda d: d.smooth.bias,
  "qfrc_passive": lambda d: d.smooth.passive,
  "qfrc_actuator": lambda d: d.smooth.actuator,
  "qfrc_smooth": lambda d: d.smooth.force,
  "qfrc_constraint": _constraint_forces,
  "actuator_length": lambda d: d.smooth.actuated.length,
  "actuator_velocity": lambda d: d.smooth.actuated.velocity,
  "actuator_force": lambda d: d.smooth.actuated.force,
  "ten_length": lambda d: d.smooth.tendons.length,
  "ten_velocity": lambda d: d.smooth.tendons.velocity,
  "energy": lambda d: [d.potential_energy, d.kinetic_energy],
  "sensordata": sensordata,
  "contact_count": _contact_count,
  "overflow": lambda d: [d.memory.dropped[0]],
  "stalled": lambda d: [d.memory.stalled[0]],
  "diverged": lambda d: [d.memory.diverged[0]],
  "solver_niter": lambda d: [d.evaluation.search.iterations[0]],
}
