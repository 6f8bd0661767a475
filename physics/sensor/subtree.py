"""Subtree sensors, and sensors of the whole model: momenta, energy and time."""

from physics.algebra.spatial import Vector
from physics.derived import Derived
from physics.sensor.kinds import Kind, Reading, Sensor


def _center(derived: Derived, sensor: Sensor) -> Vector:
  return derived.poses.origin[sensor.id] + derived.subtree_centers[sensor.id]


SUBTREE_READINGS: dict[Kind, Reading] = {
  Kind.SUBTREECOM: _center,
  Kind.SUBTREELINVEL: lambda derived, sensor: derived.subtree_momenta[sensor.id][0],
  Kind.SUBTREEANGMOM: lambda derived, sensor: derived.subtree_momenta[sensor.id][1],
  Kind.E_POTENTIAL: lambda derived, _: [derived.potential_energy],
  Kind.E_KINETIC: lambda derived, _: [derived.kinetic_energy],
  Kind.CLOCK: lambda derived, _: [derived.memory["time"][0]],
}
