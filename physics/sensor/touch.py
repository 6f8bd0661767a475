"""Touch sensors: the sum of a body's normal contact forces within a site's shape."""

from collections.abc import Sequence

from physics.algebra.spatial import dot
from physics.collision.geometry import Shape
from physics.derived import Derived
from physics.ray.ray import NONE
from physics.ray.scene import MEET
from physics.sensor.contact_sensor import contact_origin, each_contact
from physics.sensor.kinds import Kind, Reading, Sensor
from physics.trace.trace import Number, maximum, number, where


def _touch(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  """Return the sum [N] of the normal forces on the site's body, over the contacts that the site senses.

  It senses a contact inside it, or one with a ray along the normal out of the body that meets it.
  """
  model, origin, zone = sensor.model, contact_origin(derived), sensor.frame(derived)
  center, inverse = zone.position + (zone.origin - origin), zone.rotation.transposed
  x, y, z = (number(size) for size in model.site_size[sensor.id])
  meet, shape = MEET[int(model.site_type[sensor.id])], Shape(center, zone.rotation, (x, y, z))
  belongs = (model.geom_bodyid == zone.body).astype(float).tolist()
  pressure = derived.program.variable(0.0)
  for contact in each_contact(derived, origin):
    one, two = (derived.program.table(belongs, geom) > 0.5 for geom in contact.geoms)
    concerns = one | two
    if concerns is False:
      continue
    with derived.program.when_any(contact.exists & concerns):
      force = maximum(dot(contact.normal, contact.force.force), 0.0)
      outwards = inverse @ (contact.normal * where(two, -1.0, 1.0))
      distance = meet(derived.program, shape, inverse @ (contact.point - center), outwards)
      meets = contact.exists & concerns & (distance < NONE)
      pressure[0] = pressure[0] + where(meets, force, 0.0)
  return [pressure[0]]


TOUCH_READINGS: dict[Kind, Reading] = {Kind.TOUCH: _touch}
