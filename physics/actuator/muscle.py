"""Muscles: activation dynamics, and force by length and velocity.

Source: MuJoCo's manual, chapter Modeling, section Muscles; time constants of activation: Millard et al. 2013,
"Flexing computational muscle".
"""

from typing import Any, NamedTuple

import numpy as np

from physics.actuator.transmission import transmission
from physics.algebra.spatial import MINVAL, dot
from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import poses
from physics.dynamics.tendon import tendons
from physics.model.model import Floats, Model
from physics.state.state import State
from physics.trace.trace import Number, clip, maximum, number, sqrt, square, where

MUSCLE = 2  # mjtGain, mjtBias


class MuscleParams(NamedTuple):
  """The parameters of a muscle's curves (`gainprm`, `biasprm`); lengths are multiples of the optimal one."""

  shortest: Number  # where the transmission is shortest
  longest: Number  # where the transmission is longest
  force: Number  # greatest active force at rest [N]; negative: by the scale
  scale: Number  # force over inverse inertia [m/s^2]
  lmin: Number  # active force ends here
  lmax: Number  # and here
  vmax: Number  # shortening velocity without force [1/s]
  fpmax: Number  # passive force at lmax, as a multiple of the active one
  fvmax: Number  # greatest active force while lengthening, as a multiple of the isometric one


class Muscle:
  """A muscle at one length and velocity: its pull, which is negative."""

  def __init__(
    self, model: Model, actuator: int, prm: list[Number], length: Number, velocity: Number
  ) -> None:
    self.params = params = MuscleParams(*prm[:9])
    low, high = map(number, model.actuator_lengthrange[actuator])
    optimum = (high - low) / maximum(params.longest - params.shortest, MINVAL)
    strength = params.scale / maximum(number(model.actuator_acc0[actuator]), MINVAL)
    self.peak = where(params.force < 0.0, strength, params.force)
    self.fastest = maximum(optimum * params.vmax, MINVAL)  # [m/s]
    self.length = params.shortest + (length - low) / maximum(optimum, MINVAL)
    self.velocity = velocity / self.fastest

  def gain(self) -> Number:
    """Return the force per activation."""
    return -(self._at_rest * force_by_velocity(self.velocity, self.params.fvmax))

  def gain_slope(self) -> Number:
    """Return the derivative of the gain by velocity."""
    return -(self._at_rest * slope_by_velocity(self.velocity, self.params.fvmax)) / self.fastest

  def bias(self) -> Number:
    """Return the passive force."""
    return -(self.peak * self.params.fpmax * passive_force(self.length, self.params.lmax))

  @property
  def _at_rest(self) -> Number:
    return self.peak * force_by_length(self.length, self.params.lmin, self.params.lmax)


def unit_accelerations(model: Model) -> dict[str, Any]:
  """Return actuator_acc0 [nactuator], the norms of accelerations by unit forces at qpos0, if muscles need it.

  MuJoCo's `mj_setConst` derives it from inertias.
  """
  if not (np.any(model.actuator_gaintype == MUSCLE) or np.any(model.actuator_biastype == MUSCLE)):
    return {}
  qpos = [number(x) for x in model.qpos0]
  still: list[Number] = [0.0] * model.nv
  p = poses(model, qpos)
  factor = mass_matrix(model, p, composite_inertias(model, p, body_inertias(model, p))).factor()
  cords = tendons(model, p, State(qpos, still, act=[], plastic=[], mocap_pos=[], mocap_quat=[], ctrl=[]))
  norms = []
  for actuator in range(model.nactuator):
    moment = transmission(model, p, cords, qpos, actuator, pulls={}).moment
    acceleration = factor.solve([moment.get(dof, 0.0) for dof in range(model.nv)])
    norms.append(sqrt(dot(acceleration, acceleration)))
  return {"actuator_acc0": np.array(norms, object)}


def activation_rate(excitation: Number, activation: Number, dynprm: Floats) -> Number:
  """Return the rate of an activation: time constants of rise and fall depend on it, and may blend smoothly.

  `dynprm` are both time constants [s] at half activation and the width of the excess that blends them.
  """
  rise, fall, width = dynprm[:3].tolist()
  slowdown = 0.5 + 1.5 * clip(activation, 0.0, 1.0)
  rising, falling = rise * slowdown, fall / slowdown
  excess = clip(excitation, 0.0, 1.0) - activation
  if width < MINVAL:
    time = where(excess > 0.0, rising, falling)
  else:
    time = falling + (rising - falling) * smooth_step(excess / width + 0.5)
  return excess / maximum(time, MINVAL)


def smooth_step(x: Number) -> Number:
  """Return a quintic that rises from 0 at x = 0 to 1 at x = 1, with two derivatives zero at the ends."""
  x = clip(x, 0.0, 1.0)
  return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def force_by_length(length: Number, lmin: Number, lmax: Number) -> Number:
  """Return the isometric force: four parabolas, one at length one, zero at lmin and lmax."""
  away = where(length < 1.0, (1.0 - length) / (1.0 - lmin), (length - 1.0) / (lmax - 1.0))
  return where(away < 0.5, 1.0 - 2.0 * square(away), 2.0 * square(maximum(1.0 - away, 0.0)))


def force_by_velocity(velocity: Number, fvmax: Number) -> Number:
  """Return active over isometric force: zero at velocity -1, fvmax from velocity fvmax - 1 on."""
  room = fvmax - 1.0
  pulled = fvmax - square(maximum(room - velocity, 0.0)) / maximum(room, MINVAL)
  return where(velocity <= 0.0, square(maximum(velocity + 1.0, 0.0)), pulled)


def slope_by_velocity(velocity: Number, fvmax: Number) -> Number:
  """Return the derivative of `force_by_velocity`."""
  room = fvmax - 1.0
  pulled = 2.0 * maximum(room - velocity, 0.0) / maximum(room, MINVAL)
  return where(velocity <= 0.0, 2.0 * maximum(velocity + 1.0, 0.0), pulled)


def passive_force(length: Number, lmax: Number) -> Number:
  """Return the passive force: from length one a parabola, linear beyond the middle of one and lmax."""
  stretch = maximum(length - 1.0, 0.0) / (0.5 * (lmax - 1.0))
  return where(stretch <= 1.0, 0.5 * square(stretch), stretch - 0.5)
