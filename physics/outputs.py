"""Derived quantities: what a simulation reports of the state that it evaluated."""

from __future__ import annotations

from collections.abc import Iterable

from physics.dynamics import tree_centers
from physics.forward import Contacts, Evaluation
from physics.layout import COUNTERS, Layout
from physics.model import Model
from physics.smooth import Smooth
from physics.spatial import ZERO, Force, Vector, cross
from physics.trace import Mask, Number, Program


class Outputs:
  """Writes the derived quantities that the layout has rows for, in the selected lanes."""

  def __init__(self, program: Program, model: Model, layout: Layout, selected: Mask) -> None:
    self.program, self.model, self.layout, self.selected = program, model, layout, selected

  def write(self, evaluation: Evaluation, dropped: Number) -> None:
    """Write all of them; `dropped` counts the contacts that found no slot."""
    smooth, contacts, qacc = evaluation.smooth, evaluation.contacts, evaluation.qacc
    p = smooth.poses
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
    self._put("overflow", [dropped])
    self._put("solver_niter", [evaluation.iterations[0]])

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
