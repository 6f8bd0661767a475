"""Contact sensors: the contacts that match, and the fields that a sensor reports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from physics.algebra.spatial import MINVAL, STILL, ZERO, Force, Motion, Vector, cross, dot
from physics.collision.geometry import default_hint, tangents
from physics.constraint.contact import MovingContacts, WorldContacts
from physics.constraint.moving import common_origin
from physics.derived import Derived
from physics.dynamics.frame import BODY, GEOM, SITE, XBODY, frame
from physics.model.model import Model
from physics.sensor.frame_sensor import is_inside
from physics.sensor.kinds import Kind, Reading, Sensor
from physics.trace.trace import Integer, Number, Scalar, Truth, maximum, negate, sqrt, where

FOUND, FORCE, TORQUE, DISTANCE, POSITION, NORMAL, TANGENT, VELOCITY, TURN = range(9)  # mjtConDataField
SIZES = (1, 3, 3, 1, 3, 3, 3, 3, 3)
FIRST, NEAREST, STRONGEST, NET = range(4)  # how contacts are reduced to the sensor's slots
EMPTY = 1e30  # rank of an empty slot


@dataclass(frozen=True)
class Contact:
  """A contact as MuJoCo describes it, inside the loop over its list."""

  exists: Truth
  geoms: tuple[Integer | Number, Integer | Number]
  distance: Number  # [m]
  point: Vector  # [m] relative to the requested origin
  normal: Vector  # from the first geom to the second
  tangent: Vector
  force: Force  # on the second geom, at the point

  def in_frame(self, vector: Vector) -> list[Number]:
    """Return a vector's components [3] along normal and tangents."""
    axes = (self.normal, self.tangent, cross(self.normal, self.tangent))
    return [dot(axis, vector) for axis in axes]


def contact_origin(derived: Derived) -> Vector:
  """Return the world position about which contacts are summed: the origin of a tree, which is near them."""
  moving = np.flatnonzero(derived.model.body_treeid >= 0)
  return derived.poses.origin[moving[0]] if len(moving) else ZERO


def each_contact(derived: Derived, origin: Vector) -> Iterator[Contact]:
  """Yield the loops over all contacts; points are relative to a world position."""
  contacts = derived.evaluation.contacts
  if contacts.world:
    yield from _with_still_geoms(contacts.world, origin)
  if contacts.moving:
    yield from _between_moving_geoms(contacts.moving, origin)


def _with_still_geoms(contacts: WorldContacts, origin: Vector) -> Iterator[Contact]:
  model = contacts.model
  still = model.body_treeid[model.geom_bodyid] < 0
  origins = contacts.origins()
  with contacts.found.each() as entry:
    sign = contacts.program.table(np.where(still, 1.0, -1.0).tolist(), entry["geom1"])
    outwards = Vector(*entry.vector("normal"))
    reference = Vector(*(column[entry["body"]] for column in origins))
    yield Contact(
      exists=entry["weight"] > 0.0,
      geoms=(entry["geom1"], entry["geom2"]),
      distance=entry["distance"],
      point=Vector(*entry.vector("point")) + (reference - origin),
      normal=outwards * sign,
      tangent=tangents(outwards, Vector(*entry.vector("hint")))[0],
      force=contacts.wrench(entry) * sign,
    )


def _between_moving_geoms(contacts: MovingContacts, origin: Vector) -> Iterator[Contact]:
  reference = common_origin(contacts.model, contacts.p, contacts.moving)
  with contacts.found.each() as entry:
    normal = Vector(*entry.vector("normal"))
    yield Contact(
      exists=entry["weight"] > 0.0,
      geoms=(entry["geom1"], entry["geom2"]),
      distance=entry["distance"],
      point=Vector(*entry.vector("point")) + (reference - origin),
      normal=normal,
      tangent=tangents(normal, default_hint(normal))[0],
      force=contacts.wrench(entry),
    )


class BodyMotions:
  """The velocities of all bodies about a world position, in group memory, to be read by contact."""

  def __init__(self, derived: Derived, origin: Vector) -> None:
    self.program, self.model, p = derived.program, derived.model, derived.poses
    self.memory = self.program.array(6 * self.model.nbody)
    motions = [
      Motion(v.angular, v.at(origin - p.origin[body])) for body, v in enumerate(derived.smooth.velocity)
    ]
    self.memory.fill([component for motion in motions for component in motion.components])

  def relative(self, contact: Contact) -> Motion:
    """Return the velocity of the second geom's body relative to the first one's, at the contact's point."""
    one, two = (self._of(geom) for geom in contact.geoms)
    motion = two - one
    return Motion(motion.angular, motion.at(contact.point))

  def _of(self, geom: Integer | Number) -> Motion:
    start = self.program.table((6 * self.model.geom_bodyid).tolist(), geom)
    if isinstance(start, Scalar):
      return Motion.of([self.memory.take(start + float(k)) for k in range(6)])
    return Motion.of(self.memory.read(int(start) if isinstance(start, float) else start, 6))


class Match:
  """The test of a sensor for the contacts that it sees and the sign of their normals."""

  def __init__(self, derived: Derived, sensor: Sensor, origin: Vector) -> None:
    self.program, self.sensor = derived.program, sensor
    self.members = [_members(sensor.model, *side) for side in (sensor.target, sensor.reference)]
    self.zone = frame(sensor.model, derived.poses, *sensor.target) if sensor.target[0] == SITE else None
    self.zone_center = self.zone.position + (self.zone.origin - origin) if self.zone else ZERO

  def of(self, contact: Contact) -> tuple[Truth, Truth]:
    """Return whether a contact matches, and whether its normal has to be reversed."""
    (one1, one2), (two1, two2) = (
      [self.program.table(members, geom) > 0.5 for geom in contact.geoms] for members in self.members
    )
    straight, crossed = one1 & two2, one2 & two1
    matches = contact.exists & (straight | crossed)
    if self.zone:
      local = self.zone.rotation.transposed @ (contact.point - self.zone_center)
      matches = matches & is_inside(self.sensor.model, self.sensor.id, local)
    return matches, negate(straight)


def _members(model: Model, kind: int, index: int) -> list[float]:
  """Return for each geom whether it belongs to one side of a sensor: 1 or 0."""
  bodies = model.geom_bodyid
  if kind == GEOM:
    belongs = np.arange(model.ngeom) == index
  elif kind == BODY:
    belongs = bodies == index
  elif kind == XBODY:
    belongs = np.array([_is_below(model, int(body), index) for body in bodies])
  else:
    belongs = np.ones(model.ngeom)
  return belongs.astype(float).tolist()


def _is_below(model: Model, body: int, ancestor: int) -> bool:
  while body > ancestor:
    body = int(model.body_parentid[body])
  return body == ancestor


def _fields(sensor: Sensor) -> list[int]:
  """Return the fields that a contact sensor reports, in order."""
  return [field for field in range(len(SIZES)) if sensor.options[0] >> field & 1]


def _contacts(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  """Return the report of a contact sensor, slot by slot."""
  origin = contact_origin(derived)
  match = Match(derived, sensor, origin)
  return _net(derived, match, origin) if sensor.options[1] == NET else _ranked(derived, match, origin)


def _ranked(derived: Derived, match: Match, origin: Vector) -> list[Number]:
  """Return the slots: in each lane the contacts of least rank, sorted by insertion."""
  program, sensor = derived.program, match.sensor
  fields = [field for field in _fields(sensor) if field != FOUND]
  width = 1 + sum(SIZES[field] for field in fields)  # rank and report
  slots = program.array(width * (sensor.size // sum(SIZES[field] for field in _fields(sensor))))
  slots.fill([EMPTY if i % width == 0 else 0.0 for i in range(len(slots))])
  found, carried = program.variable(0.0), program.array(width)
  motions = BodyMotions(derived, origin) if {VELOCITY, TURN} & {*fields} else None
  for contact in each_contact(derived, origin):
    matches, flips = match.of(contact)
    if matches is False:
      continue
    with program.when_any(matches):
      rank = {NEAREST: contact.distance, STRONGEST: -dot(contact.force.force, contact.force.force)}
      report = _report(contact, flips, fields, origin, motions)
      carried.fill([where(matches, rank.get(sensor.options[1], found[0]), EMPTY), *report])
      found[0] = found[0] + where(matches, 1.0, 0.0)
      with program.loop(len(slots) // width) as slot:
        at = slot * width
        before, after = carried.read(), slots.read(at, width)
        first = before[0] < after[0]
        for k, (one, other) in enumerate(zip(before, after, strict=True)):
          slots[at + k], carried[k] = where(first, one, other), where(first, other, one)
  result: list[Number] = []
  for start in range(0, len(slots), width):
    if FOUND in _fields(sensor):
      result.append(where(slots[start] < EMPTY, found[0], 0.0))
    result += slots.read(start + 1, width - 1)
  return result


def _report(
  contact: Contact, flips: Truth, fields: Sequence[int], origin: Vector, motions: BodyMotions | None
) -> list[Number]:
  """Return a contact's fields; where it is reversed, normal and first tangent change their signs."""
  sign = where(flips, -1.0, 1.0)
  motion = motions.relative(contact) if motions else STILL
  vectors = (contact.force.force, contact.force.torque, motion.linear, motion.angular)
  force, torque, velocity, turn = (contact.in_frame(each) for each in vectors)
  values: dict[int, Sequence[Number]] = {
    FORCE: (*force[:2], force[2] * sign),
    TORQUE: (*torque[:2], torque[2] * sign),
    DISTANCE: (contact.distance,),
    POSITION: origin + contact.point,
    NORMAL: contact.normal * sign,
    TANGENT: contact.tangent * sign,
    VELOCITY: (*velocity[:2], velocity[2] * sign),
    TURN: (*turn[:2], turn[2] * sign),
  }
  return [value for field in fields for value in values[field]]


def _net(derived: Derived, match: Match, origin: Vector) -> list[Number]:
  """Return the sum of the matching forces, in world axes, about the force-weighted mean of their points."""
  program = derived.program
  sums = program.array(11)  # contacts, weights, weighted points, force and torque about the origin
  sums.fill([0.0] * len(sums))
  for contact in each_contact(derived, origin):
    matches, flips = match.of(contact)
    if matches is False:
      continue
    with program.when_any(matches):
      sign = where(matches, where(flips, -1.0, 1.0), 0.0)
      force = contact.force * sign
      weight = sqrt(dot(force.force, force.force))
      about = force.moved(contact.point)
      added = (where(matches, 1.0, 0.0), weight, *(contact.point * weight), *about.force, *about.torque)
      sums.fill([a + b for a, b in zip(sums.read(), added, strict=True)])
  found, weight, *rest = sums.read()
  point, some = Vector(*rest[:3]) * (1.0 / maximum(weight, MINVAL)), where(found > 0.0, 1.0, 0.0)
  net = Force(Vector(*rest[6:]), Vector(*rest[3:6])).moved(-point)
  values: dict[int, Sequence[Number]] = {
    FOUND: (found,),
    FORCE: net.force,
    TORQUE: net.torque,
    DISTANCE: (0.0,),
    POSITION: (origin + point) * where(weight > 0.0, 1.0, 0.0),
    NORMAL: (some, 0.0, 0.0),
    TANGENT: (0.0, some, 0.0),
  }
  return [value for field in _fields(match.sensor) for value in values[field]]


CONTACT_READINGS: dict[Kind, Reading] = {Kind.CONTACT: _contacts}
