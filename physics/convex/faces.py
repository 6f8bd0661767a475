"""Contacts where a face of a shape meets a face or an edge of another.

As in MuJoCo, one part is clipped by the outline of the other, the reference face; up to four corners of the
result are contacts. An edge of a capsule or a cylinder is the line on its side that touches.
"""

from dataclasses import dataclass

from physics.algebra.spatial import Vector, cross, dot, select
from physics.convex.clip import Polygon, clip, spread
from physics.convex.features import ALIGNED, Edges, Faces, Part, outline
from physics.trace.trace import Array, Number, Truth, absolute, maximum, minimum, negate, sqrt, where

LEVEL = 0.0888  # sine of the angle up to which an edge and a face meet, as in MuJoCo
CONTACTS = 4
LEAST = 1e-15


@dataclass(frozen=True)
class Meeting:
  """A contact: the lanes that have it, its distance [m], normal from a to b, and point [m]."""

  active: Truth
  distance: Number
  normal: Vector
  point: Vector


def face_contacts(a: Part, b: Part, lanes: Truth) -> list[Meeting]:
  """Return four contacts closer than the margin; none is active in lanes where only corners or edges meet."""
  return _Meet(a, b, lanes).contacts()


class _Meet:
  """A pair of faces that meet, or a face and an edge, in memory, as loops find them."""

  def __init__(self, a: Part, b: Part, lanes: Truth) -> None:
    self.a, self.b, self.lanes, self.program = a, b, lanes, a.core.program
    self.found: Array = self.program.array(9)  # 1 where found, two faces, two normals
    self.found.fill([0.0] * 9)
    self.edge: Array = self.program.array(7)  # both ends, 1 if it can touch
    self.edge.fill([0.0] * 7)
    faces_a, faces_b = Faces(a), Faces(b)
    self._pair_faces(faces_a, faces_b)
    self.both = lanes & (self.found[0] > 0.5)
    alone = lanes & ~self.both
    of_a = alone & (a.dimension < 2.5)
    self.edge_of_a = self._pair_edge(a, faces_b, of_a)
    self.edge_of_b = self._pair_edge(b, faces_a, alone & ~self.edge_of_a & (b.dimension < 2.5))

  def _pair_faces(self, faces_a: Faces, faces_b: Faces) -> None:
    with self.program.when_any(self.lanes):
      for i, exists_a in faces_a.each(self.lanes):
        for j, exists_b in faces_b.each(exists_a):
          face_a, normal_a, valid_a = faces_a.at(i)
          face_b, normal_b, valid_b = faces_b.at(j)
          first = exists_b & valid_a & valid_b & (self.found[0] < 0.5)
          meets = first & (dot(normal_a, normal_b) < -ALIGNED)
          self._note(meets, (1.0, face_a, face_b, *normal_a, *normal_b))

  def _pair_edge(self, part: Part, faces: Faces, lanes: Truth) -> Truth:
    """Find the first edge that lies in a face of the other shape; return where there is one."""
    with self.program.when_any(lanes):
      edges = Edges(part)
      for i, exists in faces.each(lanes):
        for j, here in edges.each(exists):
          face, normal, valid = faces.at(i)
          first = here & valid & (self.found[0] < 0.5)
          meets = first & (absolute(dot(edges.direction(j), normal)) < LEVEL)
          start, end = edges.at(j)
          values = (1.0, face, face, *normal, *normal)
          self._note(meets, values)
          for k, value in enumerate((*start, *end, where(edges.touches(), 1.0, 0.0))):
            self.edge[k] = where(meets, value, self.edge[k])
    return lanes & (self.found[0] > 0.5)

  def _note(self, mask: Truth, values: tuple[Number, ...]) -> None:
    self.found.fill([where(mask, new, old) for new, old in zip(values, self.found.read(), strict=True)])

  def contacts(self) -> list[Meeting]:
    """Return four contacts; some may be inactive."""
    result = self.program.array(8 * CONTACTS)
    result.fill([0.0] * (8 * CONTACTS))
    segment = self.edge_of_a | self.edge_of_b
    with self.program.when_any(self.both | segment):
      _, face_a, face_b, *normals = self.found.read()
      reference, common = self._outlines(face_a, face_b)
      outward = Vector(*normals[:3])
      normal = select(self.both | self.edge_of_a, -Vector(*normals[3:]), outward)
      aside = select(self.both, normal, outward)  # away from the reference, as its distance is measured
      grown = where(self.edge_of_a, self.a.grown, where(self.edge_of_b, self.b.grown, 0.0))
      slant = where(self.both, dot(normal, outward), 1.0)
      range_of_edge = self._cut(reference, common, outward)
      origin = reference.take(0.0)
      corners = self._corners(common, origin, outward)
      ends = self._ends(range_of_edge, origin, outward)
      corners = [*(_either(segment, a, b) for a, b in zip(ends, corners, strict=False)), *corners[2:]]
      for k, (corner, exists) in enumerate(corners):
        distance = dot(corner - origin, outward)
        foot = corner - outward * distance
        distance = distance * slant + grown
        row = (where(exists, 1.0, 0.0), distance, *normal, *(foot + aside * (0.5 * distance)))
        for j, value in enumerate(row):
          result[8 * k + j] = value
    rows = [result.read(8 * k, 8) for k in range(CONTACTS)]
    return [Meeting(row[0] > 0.5, row[1], Vector(*row[2:5]), Vector(*row[5:])) for row in rows]

  def _outlines(self, face_a: Number, face_b: Number) -> tuple[Polygon, Polygon]:
    """Return the outline of the reference, and b's face."""
    sides = self.a.core.hulls.most_sides
    reference, common = Polygon(self.program, sides + 1), Polygon(self.program, 2 * sides + 1)
    reference.clear()
    common.clear()
    outline(self.a.core, face_a, reference, self.both | self.edge_of_b)
    with self.program.when_any(self.edge_of_a):
      outline(self.b.core, face_b, reference, self.edge_of_a)
    outline(self.b.core, face_b, common, self.both)
    return reference, common

  def _cut(self, reference: Polygon, common: Polygon, outward: Vector) -> tuple[Number, Number]:
    """Cut b's face to the outline, and the edge: return where on it, from 0 to 1, it enters and leaves."""
    program = self.program
    one, two = (Vector(*self.edge.read(k, 3)) for k in (0, 3))
    enters, leaves = program.variable(0.0), program.variable(1.0)
    lanes = self.both | self.edge_of_a | self.edge_of_b
    for exists, start, end in reference.each(lanes):
      inward = cross(end - start, outward)
      inward = inward * (1.0 / sqrt(maximum(dot(inward, inward), LEAST * LEAST)))
      room, along = dot(one - start, inward), dot(two - one, inward)
      level = absolute(along) < LEAST
      at = -room / where(level, 1.0, along)
      enters[0] = where(exists & (along > LEAST), maximum(enters[0], at), enters[0])
      leaves[0] = where(exists & (along < -LEAST), minimum(leaves[0], at), leaves[0])
      leaves[0] = where(exists & level & (room < -LEAST), -1.0, leaves[0])
      with program.when_any(exists & self.both):
        clip(common, start, inward, exists & self.both)
    return enters[0], leaves[0]

  def _corners(self, common: Polygon, origin: Vector, outward: Vector) -> list[tuple[Vector, Truth]]:
    """Return four corners of the common part that are near enough, and whether they exist."""
    near = Polygon(self.program, common.capacity)
    near.clear()
    for exists, corner, _ in common.each(self.both):
      near.push(corner, exists & (dot(corner - origin, outward) <= self.a.margin))
    chosen = self.program.array(3 * CONTACTS)
    chosen.fill([x for k in range(CONTACTS) for x in near.at(k)])
    many = self.both & (near.count > CONTACTS + 0.5)
    with self.program.when_any(many):
      for k, corner in enumerate(spread(near, many, outward)):
        for j, x in enumerate(corner):
          chosen[3 * k + j] = where(many, x, chosen[3 * k + j])
    return [(Vector(*chosen.read(3 * k, 3)), self.both & (near.count > k + 0.5)) for k in range(CONTACTS)]

  def _ends(self, part: tuple[Number, Number], origin: Vector, outward: Vector) -> list[tuple[Vector, Truth]]:
    """Return both ends of the edge's part over the face, and whether they exist.

    As in MuJoCo, if only one end is near enough, it counts twice unless it is an end of the edge itself.
    """
    enters, leaves = part
    one, two = (Vector(*self.edge.read(k, 3)) for k in (0, 3))
    ends = [one + (two - one) * at for at in part]
    meets = (enters <= leaves) & (self.edge[6] > 0.5)
    reach = self.a.margin - where(self.edge_of_a, self.a.grown, self.b.grown)
    first, last = (meets & (dot(end - origin, outward) <= reach) for end in ends)
    twice = (first | (leaves < 1.0)) & (last | (enters > 0.0))
    return [
      (select(first, *ends), first | last),
      (select(last, ends[1], ends[0]), (first | last) & twice),
    ]


def _either(mask: Truth, one: tuple[Vector, Truth], two: tuple[Vector, Truth]) -> tuple[Vector, Truth]:
  """Return the first point and whether it exists where the mask holds, else the second."""
  return select(mask, one[0], two[0]), (mask & one[1]) | (negate(mask) & two[1])
