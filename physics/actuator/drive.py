"""Drives: an actuator's force from controls and activations; servos and muscles, filters, and PID.

Source: MuJoCo's manual, chapter Computation, sections Stateful actuators and Force generation; XML Reference,
actuator/general (dynamics, gain, bias, actrange, actearly, setpoints on a circle) and actuator/pid.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from physics.actuator.muscle import MUSCLE, Muscle, activation_rate
from physics.algebra.spatial import MINVAL, dot
from physics.model.model import ACTIVATIONS, Model
from physics.trace.trace import Number, clip, floor, is_zero, maximum, minimum, number, where

NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT, EXCITATION = range(5)  # mjtDyn
FIXED, AFFINE, _, DC_MOTOR, _, PID = range(6)  # mjtGain; AFFINE is in mjtBias too
POSITION, VELOCITY, FEEDFORWARD, VOLTAGE = 1, 2, 4, 8  # mjtCtrlInput
INPUTS = (POSITION, VELOCITY, FEEDFORWARD, VOLTAGE)  # in the order of an actuator's controls


@dataclass(frozen=True)
class Signals:
  """The inputs of a drive in one state."""

  length: Number  # [m or rad]
  velocity: Number  # [m/s or rad/s]
  period: Number  # of the length on a circle; zero: it is on a line
  ctrl: list[Number]  # [ctrlnum] of this actuator, limited
  act: list[Number]  # [actnum] of this actuator


class Drive(ABC):
  """The drive of one actuator in one state: its force, the force's slope, the rates of its activations."""

  def __init__(self, model: Model, actuator: int, signals: Signals) -> None:
    self.model, self.actuator, self.signals = model, actuator, signals
    self.dynprm, self.gainprm, self.biasprm = (
      [number(x) for x in prm[actuator]]
      for prm in (model.actuator_dynprm, model.actuator_gainprm, model.actuator_biasprm)
    )
    slots = zip(ACTIVATIONS, model.actuator_slots[actuator].tolist(), strict=True)
    self.slot = {name: slot for name, slot in slots if slot >= 0}  # of activations that exist
    rates = self.rates()
    self.act_dot = [rates[name] for name in self.slot]

  @abstractmethod
  def rates(self) -> dict[str, Number]:
    """Return the rates of the activations by name (MuJoCo's `act_dot`)."""

  @abstractmethod
  def force(self) -> Number:
    """Return the force before limits."""

  @abstractmethod
  def slope(self) -> Number:
    """Return the derivative of the force by velocity, as MuJoCo's implicit integrators take it."""

  def unlimited_force(self) -> Number:
    """Return the force that is added after limits."""
    return 0.0

  def unlimited_slope(self) -> Number:
    """Return the derivative of that force by velocity."""
    return 0.0

  def at(self, length: Number, velocity: Number) -> "Drive":
    """Return the same drive at another length and velocity of the transmission."""
    return type(self)(self.model, self.actuator, replace(self.signals, length=length, velocity=velocity))

  def advance(self, act: list[Number], act_dot: list[Number]) -> list[Number]:
    """Return the activations [actnum] a time step after `act`, at constant rates, in range."""
    later = [a + self.model.timestep * rate for a, rate in zip(act, act_dot, strict=True)]
    if self.model.actuator_actlimited[self.actuator]:
      low, high = map(number, self.model.actuator_actrange[self.actuator])
      later = [clip(a, low, high) for a in later]
    return later

  def acting(self, name: str) -> Number:
    """Return the activation that makes force: the present one, or with `actearly` the next one."""
    act = self.signals.act
    if self.model.actuator_actearly[self.actuator]:
      act = self.advance(act, self.act_dot)
    return act[self.slot[name]]

  def inputs(self, ctrl: list[Number]) -> tuple[Number, ...]:
    """Return position, velocity, feed-forward and voltage of `ctrl` [ctrlnum]; zero where there is none."""
    present, spec = iter(ctrl), int(self.model.actuator_ctrlspec[self.actuator])
    return tuple(next(present) if spec & kind else 0.0 for kind in INPUTS)

  def affine(self, prm: list[Number]) -> Number:
    """Return the affine function of length and velocity with coefficients `prm[:3]`."""
    return dot(prm[:3], (1.0, self.signals.length, self.signals.velocity))

  def slewed(self, rate: Number, period: Number) -> list[Number]:
    """Return the controls [ctrlnum]; the first moves from the last setpoint at most at a rate [1/s]."""
    ctrl = list(self.signals.ctrl)
    if "setpoint" in self.slot:
      last, reach = self.signals.act[self.slot["setpoint"]], rate * self.model.timestep
      ctrl[0] = clip(nearest_turn(ctrl[0], last, period), last - reach, last + reach)
    return ctrl

  def slew_rate(self, setpoint: Number) -> Number:
    """Return the rate that takes the last setpoint to the present one in a time step."""
    return (setpoint - self.signals.act[self.slot["setpoint"]]) / self.model.timestep


class Servo(Drive):
  """A servo or muscle: gain times control or activation, plus bias; both by length and velocity."""

  def rates(self) -> dict[str, Number]:
    """Integrate the control, or follow it with a time constant."""
    if self._kind == NO_DYNAMICS:
      return {}
    ctrl, act = self.signals.ctrl[0], self.signals.act[0]
    if self._kind == INTEGRATOR:
      return {"filtered": ctrl}
    if self._kind == EXCITATION:
      return {"filtered": activation_rate(ctrl, act, self.model.actuator_dynprm[self.actuator])}
    return {"filtered": (nearest_turn(ctrl, act, self._period) - act) / self._time_constant}

  def force(self) -> Number:
    """Return gain times input plus bias; a position setpoint on a circle is the turn nearest the length."""
    source = nearest_turn(self._input, self.signals.length, self._period)
    if self._gain_kind != FIXED or self._bias_kind != AFFINE or is_zero(self.biasprm[1]):
      return self._gain * source + self._bias
    # A position servo: the difference of two large products would leave their rounding.
    gain, (offset, stiffness, damping) = self._gain, self.biasprm[:3]
    return gain * (source - self.signals.length) + self.affine([offset, stiffness + gain, damping])

  def slope(self) -> Number:
    """Return the bias's velocity coefficient plus the gain's times the input."""
    slope = self.biasprm[2] if self._bias_kind == AFFINE else 0.0
    if self._gain_kind == FIXED:
      return slope
    gain_slope = self.gainprm[2] if self._gain_kind == AFFINE else self._muscle(self.gainprm).gain_slope()
    return slope + gain_slope * self._input

  def advance(self, act: list[Number], act_dot: list[Number]) -> list[Number]:
    """Return the activations [actnum] a time step after `act`, exactly filtered if asked.

    A setpoint on a circle is the turn nearest the length.
    """
    if self._kind == FILTER_EXACT:
      decay = 1.0 - math.exp(-self.model.timestep / self._time_constant)
      act_dot = [rate * (self._time_constant * decay / self.model.timestep) for rate in act_dot]
    later = super().advance(act, act_dot)
    return [nearest_turn(a, self.signals.length, self._period) for a in later]

  @property
  def _kind(self) -> int:
    return int(self.model.actuator_dyntype[self.actuator])

  @property
  def _input(self) -> Number:
    return self.signals.ctrl[0] if self._kind == NO_DYNAMICS else self.acting("filtered")

  @property
  def _time_constant(self) -> float:
    return max(MINVAL, float(self.model.actuator_dynprm[self.actuator, 0]))

  @property
  def _gain_kind(self) -> int:
    return int(self.model.actuator_gaintype[self.actuator])

  @property
  def _bias_kind(self) -> int:
    return int(self.model.actuator_biastype[self.actuator])

  @property
  def _gain(self) -> Number:
    if self._gain_kind == MUSCLE:
      return self._muscle(self.gainprm).gain()
    return self.affine(self.gainprm) if self._gain_kind == AFFINE else self.gainprm[0]

  @property
  def _bias(self) -> Number:
    if self._bias_kind == MUSCLE:
      return self._muscle(self.biasprm).bias()
    return self.affine(self.biasprm) if self._bias_kind == AFFINE else 0.0

  def _muscle(self, prm: list[Number]) -> Muscle:
    return Muscle(self.model, self.actuator, prm, self.signals.length, self.signals.velocity)

  @property
  def _period(self) -> Number:
    return self.signals.period if self.model.actuator_is_servo[self.actuator] else 0.0


class Pid(Drive):
  """A PID controller of position and velocity, with optional integral action and feed-forward."""

  def rates(self) -> dict[str, Number]:
    """Follow the setpoint at a limited rate, and integrate the position error."""
    setpoint, rates = self._setpoints()[0], {}
    if "setpoint" in self.slot:
      rates["setpoint"] = self.slew_rate(setpoint)
    if "integral" in self.slot:
      error = nearest_turn(setpoint - self.signals.length, 0.0, self.signals.period)
      rates["integral"] = held_error(error, self.signals.act[self.slot["integral"]], self.dynprm[0])
    return rates

  def force(self) -> Number:
    """Return the gains times the errors; the bias is the part of length and velocity."""
    position, velocity, feedforward, _ = self.inputs(self._setpoints())
    position = nearest_turn(position, self.signals.length, self.signals.period)
    force = self.affine(self.biasprm) - self.biasprm[1] * position - self.biasprm[2] * velocity + feedforward
    return force + self.gainprm[0] * self.acting("integral") if "integral" in self.slot else force

  def slope(self) -> Number:
    """Return the velocity coefficient."""
    return self.biasprm[2]

  def _setpoints(self) -> list[Number]:
    return self.slewed(self.dynprm[1], self.signals.period)


def nearest_turn(setpoint: Number, length: Number, period: Number) -> Number:
  """Return the setpoint, moved by whole periods to within half a period of a length."""
  if is_zero(period):
    return setpoint
  return setpoint - period * floor((setpoint - length) / period + 0.5)


def held_error(error: Number, integral: Number, limit: Number) -> Number:
  """Return an error to integrate: zero if it drives the integral beyond a limit; a limit of 0 is none."""
  held = where(integral <= -limit, maximum(error, 0.0), error)
  held = where(integral >= limit, minimum(error, 0.0), held)
  return where(limit > 0.0, held, error)
