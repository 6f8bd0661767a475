"""Adhesion: of geoms, and of bodies with adhesion actuators.

Source: MuJoCo's manual, chapter Computation, sections Transmission (body) and Constraint model (Adhesion);
XML Reference, geom/adhesion and actuator/adhesion.
"""

from collections.abc import Sequence

from physics.actuator.transmission import adhesive_bodies
from physics.algebra.spatial import total
from physics.constraint.contact import MovingContacts, WorldContacts
from physics.model.model import Model
from physics.trace.trace import Number, maximum


def adhesion_moments(
  model: Model, contacts: Sequence[WorldContacts | MovingContacts]
) -> dict[int, dict[int, Number]]:
  """Return the moment arms of the force on each adhesive body, by body and degree of freedom.

  They are the mean of its contacts' normals, negated: an actuator's force is shared among the contacts.
  """
  moments = {}
  for body in adhesive_bodies(model):
    sums = [kind.normals_of(body) for kind in contacts]
    share = -1.0 / maximum(total(count for count, _ in sums), 1.0)
    arms = {dof: share * total(normal[dof] for _, normal in sums) for dof in range(model.nv)}
    moments[body] = arms
  return moments


def adhesion_forces(contacts: Sequence[WorldContacts | MovingContacts]) -> list[Number] | None:
  """Return the joint forces [nv] of the geoms' adhesion (`qfrc_adhesion`), None if no geom has it.

  A contact always pulls, and its constraint pushes by as much more (`Residuals.prepare_entry`): the sum is
  the force of a cone with its apex below zero by the adhesion.
  """
  sticky = [kind for kind in contacts if kind.sticks]
  if not sticky:
    return None
  rows = [kind.normals(kind.adhesion)[1] for kind in sticky]
  return [-total(row) for row in zip(*rows, strict=True)]
