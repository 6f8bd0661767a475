"""Plastic springs: their rest positions, which move once springs are bent beyond their yield.

A plastic spring's rest is part of the state, `plastic`: a position of a slide or hinge, an orientation [4] of
a ball, both ends of the range in which a tendon is slack.

Source: MuJoCo's XML Reference, joint/springyield and tendon/springyield.
"""

from collections.abc import Sequence

from physics.algebra.spatial import Quaternion
from physics.dynamics.kinematics import BALL
from physics.model.model import Model
from physics.trace.trace import Number, absolute, clip, maximum, number, where


def rest_position(model: Model, plastic: Sequence[Number]) -> list[Number]:
  """Return the joint positions [nq] at which springs rest."""
  rest = [number(x) for x in model.qpos_spring]
  for joint in plastic_joints(model):
    at, first = int(model.jnt_qposadr[joint]), int(model.jnt_plasticadr[joint])
    size = 4 if model.jnt_type[joint] == BALL else 1
    rest[at : at + size] = plastic[first : first + size]
  return rest


def rest_range(model: Model, plastic: Sequence[Number], tendon: int) -> tuple[Number, Number]:
  """Return the lengths [m, rad] between which a tendon's spring is slack."""
  first = int(model.tendon_plasticadr[tendon])
  low, high = map(number, model.tendon_lengthspring[tendon]) if first < 0 else plastic[first : first + 2]
  return low, high


def plastic_joints(model: Model) -> list[int]:
  """Return the joints with plastic springs."""
  return [joint for joint in range(model.njnt) if model.jnt_plasticadr[joint] >= 0]


def plastic_tendons(model: Model) -> list[int]:
  """Return the tendons with plastic springs."""
  return [tendon for tendon in range(model.ntendon) if model.tendon_plasticadr[tendon] >= 0]


def yielded(
  model: Model, plastic: Sequence[Number], qpos: Sequence[Number], lengths: Sequence[Number]
) -> list[Number]:
  """Return `plastic` [nplastic] after joints came to `qpos` [nq] and the plastic tendons to `lengths`.

  A spring that is bent further than its yield rests a yield away from where it is.
  """
  later = list(plastic)
  for joint in plastic_joints(model):
    at, first = int(model.jnt_qposadr[joint]), int(model.jnt_plasticadr[joint])
    limit = number(model.jnt_springyield[joint])
    if model.jnt_type[joint] == BALL:
      turned = Quaternion.normalize(qpos[at : at + 4])
      later[first : first + 4] = _yielded_turn(plastic[first : first + 4], turned, limit)
    else:
      later[first] = clip(plastic[first], qpos[at] - limit, qpos[at] + limit)
  for tendon, length in zip(plastic_tendons(model), lengths, strict=True):
    first, limit = int(model.tendon_plasticadr[tendon]), number(model.tendon_springyield[tendon])
    low, high = plastic[first : first + 2]
    later[first : first + 2] = _yielded_range(low, high, length, limit)
  return later


def _yielded_turn(rest: Sequence[Number], turned: Quaternion, limit: Number) -> Sequence[Number]:
  """Return an orientation at rest [4], turned on the shortest way to within a limit [rad]."""
  start = Quaternion.normalize(rest)
  axis, angle = (start.conjugate * turned).rotation_vector()
  beyond = absolute(angle) > limit
  excess = where(angle > 0.0, angle - limit, angle + limit)
  moved = (start * Quaternion.about(axis, excess)).components
  return [where(beyond, new, old) for new, old in zip(moved, rest, strict=True)]


def _yielded_range(low: Number, high: Number, length: Number, limit: Number) -> tuple[Number, Number]:
  """Return a slack range, moved to within a limit of a length.

  Of a rope, slack from length zero, only the upper end moves as it is pulled.
  """
  pulled, pushed = maximum(length - high - limit, 0.0), maximum(low - length - limit, 0.0)
  is_rope = (low <= 0.0) & (low >= 0.0) & (high > 0.0)
  return low + where(is_rope, 0.0, pulled) - pushed, high + pulled - pushed
