"""DC motors: controller, winding, heat, cogging and friction between controls and a force.

Source: MuJoCo's manual, XML Reference, actuator/dcmotor; friction with bristles: Canudas de Wit et al. 1995,
"A new model for control of systems with friction".
"""

import math
from functools import cached_property
from typing import NamedTuple

from physics.actuator.drive import FEEDFORWARD, POSITION, VELOCITY, Drive, held_error
from physics.algebra.spatial import MINVAL, dot
from physics.trace.trace import Number, Truth, absolute, clip, exp, maximum, sin, where

SMALL = 0.1  # exponent below which the series is more precise than the exponential minus one


class ActivationParams(NamedTuple):
  """The parameters of a motor's activations (`dynprm`)."""

  electric_time: Number  # constant of the current [s]
  current_rate: Number  # limit [A/s]; zero: none
  thermal_resistance: Number  # [K/W]
  heat_capacity: Number  # [J/K]
  ambient: Number  # temperature [C]
  stiffness: Number  # of the bristles [N m/rad]
  damping: Number  # of the bristles [N m s/rad]
  slew_rate: Number  # limit of the first control [1/s]
  integral: Number  # limit; zero: none


class WindingParams(NamedTuple):
  """The parameters of winding and controller (`gainprm`)."""

  resistance: Number  # at the reference temperature [Ohm]
  K: Number  # motor constant [N m/A, V s/rad]
  temperature_coefficient: Number  # of the resistance [1/K]
  reference: Number  # temperature [C]
  kp: Number
  ki: Number
  kd: Number
  voltage: Number  # limit of the controller [V]; zero: none


class MechanicalParams(NamedTuple):
  """The parameters of cogging and friction (`biasprm`)."""

  cogging: Number  # amplitude [N m]
  poles: Number
  phase: Number  # [rad]
  coulomb: Number  # friction [N m]
  static: Number  # friction [N m]
  stribeck: Number  # velocity at which static friction falls to Coulomb's [rad/s]


class Motor(Drive):
  """A DC motor: a voltage drives a current through the winding, which makes torque in proportion."""

  @cached_property
  def dynamics(self) -> ActivationParams:
    """Parameters of the activations."""
    return ActivationParams(*self.dynprm[:9])

  @cached_property
  def winding(self) -> WindingParams:
    """Parameters of winding and controller."""
    return WindingParams(*self.gainprm[:8])

  @cached_property
  def mechanics(self) -> MechanicalParams:
    """Parameters of cogging and friction."""
    return MechanicalParams(*self.biasprm[:6])

  def rates(self) -> dict[str, Number]:
    """Return the rates of setpoint, integral of the error, winding temperature, bristles and current."""
    dynamics, rates = self.dynamics, {}
    first = self._setpoints[0] if self._setpoints else 0.0
    if "setpoint" in self.slot:
      rates["setpoint"] = self.slew_rate(first)
    if "integral" in self.slot:
      error = first - self.signals.length
      rates["integral"] = held_error(error, self._present("integral"), dynamics.integral)
    if "temperature" in self.slot:
      heat = self._resistance * self._current * self._current
      cooling = self._present("temperature") / dynamics.thermal_resistance
      rates["temperature"] = (heat - cooling) / dynamics.heat_capacity
    if "bristle" in self.slot:
      rates["bristle"] = self.signals.velocity - self._relaxation * self._present("bristle")
    if "current" in self.slot:
      rates["current"] = limited(self._current_rate, dynamics.current_rate)
    return rates

  def force(self) -> Number:
    """Return the motor constant times the current."""
    return self.winding.K * (self.acting("current") if "current" in self.slot else self._current)

  def slope(self) -> Number:
    """Return the damping by back-EMF, or by the controller where its voltage is within its limit."""
    winding = self.winding
    back_emf: Number = winding.K
    if self._is_controlled:
      damping = winding.kd * winding.resistance / winding.K
      back_emf = where(is_beyond(self._controller_voltage, winding.voltage), back_emf, damping)
    slope = -(winding.K * back_emf / self._resistance)
    if "current" not in self.slot:
      return slope
    return where(is_beyond(self._current_rate, self.dynamics.current_rate), 0.0, slope * self._electric_share)

  def unlimited_force(self) -> Number:
    """Return cogging and friction."""
    mechanics, dynamics = self.mechanics, self.dynamics
    force = mechanics.cogging * sin(mechanics.poles * self.signals.length + mechanics.phase)
    if "bristle" not in self.slot:
      return force
    rate = self.act_dot[self.slot["bristle"]]
    return force - (dynamics.stiffness * self._present("bristle") + dynamics.damping * rate)

  def unlimited_slope(self) -> Number:
    """Return the damping by bristles, at a constant rate of relaxation."""
    return -self.dynamics.damping if "bristle" in self.slot else 0.0

  def advance(self, act: list[Number], act_dot: list[Number]) -> list[Number]:
    """Return the activations [actnum] a time step after `act`.

    Current and bristles are exact at a constant velocity.
    """
    h, dynamics = self.model.timestep, self.dynamics
    later = [a + h * rate for a, rate in zip(act, act_dot, strict=True)]
    if (at := self.slot.get("integral")) is not None:
      later[at] = limited(later[at], dynamics.integral)
    if (at := self.slot.get("current")) is not None:
      later[at] = act[at] + act_dot[at] * (dynamics.electric_time * self._electric_share)
    if (at := self.slot.get("bristle")) is not None:
      exponent = -(h * self._relaxation)
      later[at] = exp(exponent) * act[at] + h * self.signals.velocity * mean_exponential(exponent)
    return later

  def _present(self, name: str) -> Number:
    return self.signals.act[self.slot[name]]

  @property
  def _is_controlled(self) -> bool:
    """Whether an on-board controller makes the voltage."""
    return bool(self.model.actuator_ctrlspec[self.actuator] & (POSITION | VELOCITY | FEEDFORWARD))

  @cached_property
  def _setpoints(self) -> list[Number]:
    return self.slewed(self.dynamics.slew_rate, 0.0)

  @cached_property
  def _voltage(self) -> Number:
    """The voltage [V] at the winding: the controller's and the control's."""
    voltage = self.inputs(self._setpoints)[-1]
    if not self._is_controlled:
      return voltage
    return limited(self._controller_voltage, self.winding.voltage) + voltage

  @cached_property
  def _controller_voltage(self) -> Number:
    """The voltage [V] that makes the controller's torque, back-EMF compensated, before its limit."""
    winding, (position, velocity, feedforward, _) = self.winding, self.inputs(self._setpoints)
    integral = self._present("integral") if "integral" in self.slot else 0.0
    errors = (position - self.signals.length, velocity - self.signals.velocity, integral)
    torque = dot((winding.kp, winding.kd, winding.ki), errors) + feedforward
    return winding.resistance / winding.K * torque + winding.K * self.signals.velocity

  @cached_property
  def _resistance(self) -> Number:
    """The resistance [Ohm] at the winding's temperature, which is an activation: kelvin above the ambient."""
    winding = self.winding
    if "temperature" not in self.slot:
      return maximum(winding.resistance, MINVAL)
    warmth = self._present("temperature") + self.dynamics.ambient - winding.reference
    return maximum(winding.resistance * (1.0 + winding.temperature_coefficient * warmth), MINVAL)

  @cached_property
  def _driven_current(self) -> Number:
    """The current [A] that voltage and back-EMF sustain."""
    return (self._voltage - self.winding.K * self.signals.velocity) / self._resistance

  @property
  def _current(self) -> Number:
    """The current [A]: an activation, or the sustained current."""
    return self._present("current") if "current" in self.slot else self._driven_current

  @cached_property
  def _current_rate(self) -> Number:
    """The rate [A/s] of a current that is an activation, before its limit."""
    return (self._driven_current - self._current) / self.dynamics.electric_time

  @property
  def _electric_share(self) -> float:
    """The share of the way to the sustained current that a time step covers."""
    return 1.0 - math.exp(-self.model.timestep / float(self.model.actuator_dynprm[self.actuator, 0]))

  @cached_property
  def _relaxation(self) -> Number:
    """The rate [1/s] at which the motion relaxes the bristles."""
    mechanics, speed = self.mechanics, self.signals.velocity
    ratio = speed / maximum(mechanics.stribeck, MINVAL)
    friction = mechanics.coulomb + (mechanics.static - mechanics.coulomb) * exp(-(ratio * ratio))
    return self.dynamics.stiffness * absolute(speed) / maximum(friction, MINVAL)


def limited(value: Number, limit: Number) -> Number:
  """Return a value limited to [-limit, limit]; a limit of zero is none."""
  return where(limit > 0.0, clip(value, -limit, limit), value)


def is_beyond(value: Number, limit: Number) -> Truth:
  """Return whether `limited` changes a value."""
  return (limit > 0.0) & (absolute(value) > limit)


def mean_exponential(x: Number) -> Number:
  """Return (exp(x) - 1) / x, one at zero."""
  series: Number = 1.0
  for k in range(8, 1, -1):
    series = 1.0 + x * series / k
  small = absolute(x) < SMALL
  return where(small, series, (exp(x) - 1.0) / where(small, 1.0, x))
