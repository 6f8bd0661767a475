"""Frames fixed in bodies: of bodies, their inertias, geoms, sites and cameras."""

from dataclasses import dataclass
from typing import Any

from physics.algebra.spatial import Matrix, Quaternion, Vector, vector
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.each import Each, entry, follow

BODY, XBODY, GEOM, SITE, CAMERA = 1, 2, 5, 6, 7  # mjtObj; BODY is the frame of a body's inertia


@dataclass(frozen=True)
class Frame:
  """A frame fixed in a body, in one state."""

  body: int
  origin: Vector  # of the body's tree, in the world [m]
  position: Vector  # relative to it [m]
  quaternion: Quaternion
  rotation: Matrix  # frame to world

  @property
  def world(self) -> Vector:
    """World position [m]."""
    return self.origin + self.position

  def offset(self, other: "Frame") -> Vector:
    """Return the vector [m] from another frame's position to this one's."""
    return (self.position - other.position) + (self.origin - other.origin)


def frame(model: Model, p: Poses, kind: int, index: Each) -> Frame:
  """Return the frame of an element of one of the kinds above."""
  body, position, quaternion = _local(model, kind, index)
  turn = Quaternion.constant(quaternion)
  rotation = p.rotation[body].times(turn.matrix())
  at = p.relative(body, vector(position))
  return Frame(body, p.origin[body], at, p.quaternion[body] * turn, rotation)


def _local(model: Model, kind: int, index: Each) -> tuple[Any, Any, Any]:
  """Return the body of an element, and position and quaternion in it."""
  if kind == BODY:
    return index, entry(model.body_ipos, index), entry(model.body_iquat, index)
  if kind == XBODY:
    return index, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
  name = {GEOM: "geom", SITE: "site", CAMERA: "cam"}[kind]
  position, quaternion = (entry(getattr(model, f"{name}_{part}"), index) for part in ("pos", "quat"))
  return follow(getattr(model, f"{name}_bodyid"), index), position, quaternion
