"""Surface velocities: surfaces that move while their geoms do not, such as conveyor belts and turntables.

Source: MuJoCo's manual, XML Reference, geom/surfacevel; chapter Computation, section Constraint model.
"""

from collections.abc import Sequence

from physics.algebra.spatial import Motion, Vector, cross, dot, vector
from physics.collision.geometry import Shape
from physics.model.model import Model
from physics.trace.column import Column
from physics.trace.compact import Entry, vector_fields
from physics.trace.trace import Integer, Number, Program


def surface_motion(model: Model, geom: int, shape: Shape) -> Motion:
  """Return the velocity of a geom's surface, relative to the geom, about the reference of its shape."""
  values = model.geom_surfacevel[geom]
  linear, angular = (shape.rotation @ vector(part) for part in (values[:3], values[3:]))
  return Motion(angular, linear + cross(shape.position, angular))


class Surfaces:
  """The surface velocities that the contacts of one family's pairs see."""

  def __init__(self, program: Program, motions: Sequence[Motion]) -> None:
    """Make a table of motions by pair: of the surface that the normal points to, relative to the other."""
    self.columns = [Column(program, x) for x in zip(*(m.components for m in motions), strict=True)]

  def fields(self, pair: Integer | Number, point: Vector, normal: Vector) -> dict[str, Number]:
    """Return the fields `surface` [m/s] and `surface_spin` [rad/s], about the normal, of a contact."""
    motion = Motion.of([column[pair] for column in self.columns])
    return vector_fields(surface=motion.at(point)) | {"surface_spin": dot(motion.angular, normal)}


def sliding(contact: Entry) -> Motion:
  """Return the motion of a contact's surface at its point: along the normal it does not count."""
  normal = Vector(*contact.vector("normal"))
  return Motion(normal * contact["surface_spin"], Vector(*contact.vector("surface")))
