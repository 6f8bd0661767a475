"""Actuation: joint forces from controls and activations.

Source: MuJoCo's manual, chapter Computation, section Actuation model; chapter Modeling, sections Disabling
actuators and Force limits.
"""

from dataclasses import dataclass

from physics.actuator.drive import AFFINE, DC_MOTOR, FIXED, PID, Drive, Pid, Servo, Signals
from physics.actuator.motor import Motor
from physics.actuator.muscle import MUSCLE
from physics.actuator.transmission import IN_PARENT, JOINT, TENDON, Pulls, Transmission, transmission
from physics.dynamics.kinematics import Poses
from physics.dynamics.tendon import Tendons
from physics.model.model import Floats, Model
from physics.state.state import State
from physics.trace.trace import Number, Truth, absolute, clip, is_zero, number, where

DRIVES: dict[int, type[Drive]] = {FIXED: Servo, AFFINE: Servo, MUSCLE: Servo, DC_MOTOR: Motor, PID: Pid}
ROUNDING = 1e-6  # relative to a limit: a sum of forces this close counts as being at the limit


@dataclass(frozen=True)
class Actuated:
  """The actuators in one state: their transmissions, drives and forces."""

  model: Model
  transmissions: list[Transmission]  # [nactuator]
  drives: list[Drive]  # [nactuator]
  limited: list[Number]  # [nactuator] forces within the limits of actuators and tendons
  force: list[Number]  # [nactuator] MuJoCo's actuator_force: these, and forces that only joints limit
  qfrc: list[Number]  # [nv] MuJoCo's qfrc_actuator

  @property
  def length(self) -> list[Number]:
    """Lengths of the transmissions [nactuator] [m, rad] (MuJoCo's `actuator_length`)."""
    return [drive.signals.length for drive in self.drives]

  @property
  def velocity(self) -> list[Number]:
    """Rates of the lengths [nactuator] [m/s, rad/s] (MuJoCo's `actuator_velocity`)."""
    return [drive.signals.velocity for drive in self.drives]

  @property
  def act_dot(self) -> list[Number]:
    """Rates of the activations [na]."""
    return [rate for drive in self.drives for rate in drive.act_dot]

  def next_activation(
    self, act: list[Number], act_dot: list[Number], length: list[Number], velocity: list[Number]
  ) -> list[Number]:
    """Return the activations [na] a time step later than `act`, at rates `act_dot`; disabled ones stay.

    Lengths and velocities are those at the start of the time step.
    """
    if not self.model.actuation_enabled:
      return act
    later: list[Number] = []
    for actuator, drive in enumerate(self.drives):
      here = slice(len(later), len(later) + len(drive.act_dot))
      works = bool(self.model.actuator_enabled[actuator])
      rates = [rate if works else 0.0 for rate in act_dot[here]]
      later += drive.at(length[actuator], velocity[actuator]).advance(act[here], rates)
    return later

  def damping(self) -> dict[tuple[int, int], Number]:
    """Return the negated derivative of the joint forces by velocity: entries (i, j), i >= j.

    A force at a limit of its actuator, or of the tendon or joint that it acts on, has no damping.
    """
    entries: dict[tuple[int, int], Number] = {}
    for actuator, (drive, line) in enumerate(zip(self.drives, self.transmissions, strict=True)):
      if not self.model.actuation_enabled or not self.model.actuator_enabled[actuator]:
        continue
      slope = where(self._is_limited(actuator), 0.0, drive.slope()) + drive.unlimited_slope()
      slope = where(self._is_limited_by_joint(actuator), 0.0, slope)
      if not is_zero(slope):
        for i, one in line.moment.items():
          for j, two in line.moment.items():
            if i >= j:
              entries[i, j] = entries.get((i, j), 0.0) - slope * (one * two)
    return entries

  def _is_limited(self, actuator: int) -> Truth:
    model, target = self.model, int(self.model.actuator_trnid[actuator, 0])
    limited: Truth = False
    if model.actuator_forcelimited[actuator]:
      limited = _is_at_limit(self.limited[actuator], model.actuator_forcerange[actuator])
    if model.actuator_trntype[actuator] == TENDON and model.tendon_actfrclimited[target]:
      total = _tendon_force(model, self.limited, target)
      limited = limited | _is_at_limit(total, model.tendon_actfrcrange[target])
    return limited

  def _is_limited_by_joint(self, actuator: int) -> Truth:
    model, joint = self.model, int(self.model.actuator_trnid[actuator, 0])
    if model.actuator_trntype[actuator] not in (JOINT, IN_PARENT) or not model.jnt_actfrclimited[joint]:
      return False
    return _is_at_limit(self.qfrc[model.jnt_dofadr[joint]], model.jnt_actfrcrange[joint])


def actuate(
  model: Model, p: Poses, tendons: Tendons, state: State, compensation: list[Number], pulls: Pulls
) -> Actuated:
  """Compute the forces of the actuators (MuJoCo's `mj_fwdActuation`); `pulls` are adhesion's moment arms.

  `compensation` [nv] are the joint forces that carry the compensated part of the weight. They count as forces
  of actuators in the joints that ask for it. Without actuators, or with actuation disabled, forces are zero.
  """
  lines = [transmission(model, p, tendons, state.qpos, i, pulls) for i in range(model.nactuator)]
  spans = zip(state.ctrl, model.actuator_ctrllimited, model.actuator_ctrlrange, strict=True)
  ctrl = [clip(x, *map(number, span)) if is_limited else x for x, is_limited, span in spans]
  drives = [_drive(model, actuator, line, ctrl, state) for actuator, line in enumerate(lines)]
  if not drives or not model.actuation_enabled:
    none: list[Number] = [0.0] * len(drives)
    return Actuated(model, lines, drives, none, none, [0.0] * model.nv)
  limited = _limited_forces(model, drives)
  force = [
    f + drive.unlimited_force() if enabled else f
    for f, drive, enabled in zip(limited, drives, model.actuator_enabled, strict=True)
  ]
  return Actuated(model, lines, drives, limited, force, _joint_forces(model, lines, force, compensation))


def _drive(model: Model, actuator: int, line: Transmission, ctrl: list[Number], state: State) -> Drive:
  """Make an actuator's drive in one state."""
  first = int(model.actuator_ctrladr[actuator])
  controls = ctrl[first : first + int(model.actuator_ctrlnum[actuator])]
  start = max(0, int(model.actuator_actadr[actuator]))
  act = state.act[start : start + int(model.actuator_actnum[actuator])]
  signals = Signals(line.length, line.velocity(state.qvel), line.period, controls, act)
  return DRIVES[int(model.actuator_gaintype[actuator])](model, actuator, signals)


def _limited_forces(model: Model, drives: list[Drive]) -> list[Number]:
  """Return the forces that have limits, within the limits of actuators and tendons."""
  force = [
    drive.force() if enabled else 0.0 for drive, enabled in zip(drives, model.actuator_enabled, strict=True)
  ]
  force = _limited_by_tendons(model, force)
  return [
    clip(f, *map(number, span)) if limited else f
    for f, limited, span in zip(force, model.actuator_forcelimited, model.actuator_forcerange, strict=True)
  ]


def _limited_by_tendons(model: Model, force: list[Number]) -> list[Number]:
  """Scale the forces on each tendon so that their sum stays in the tendon's range, which contains zero."""
  force = list(force)
  for tendon in range(len(model.tendon_actfrclimited)):
    if model.tendon_actfrclimited[tendon]:
      low, high = map(number, model.tendon_actfrcrange[tendon])
      total = _tendon_force(model, force, tendon)
      beyond = (total < low) | (total > high)
      scale = where(beyond, clip(total, low, high) / where(beyond, total, 1.0), 1.0)
      for actuator in _on_tendon(model, tendon):
        force[actuator] = force[actuator] * scale
  return force


def _on_tendon(model: Model, tendon: int) -> list[int]:
  """Return the actuators that act on a tendon."""
  targets = zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
  return [actuator for actuator, target in enumerate(targets) if target == (TENDON, tendon)]


def _tendon_force(model: Model, force: list[Number], tendon: int) -> Number:
  total: Number = 0.0
  for actuator in _on_tendon(model, tendon):
    total = total + force[actuator]
  return total


def _joint_forces(
  model: Model, lines: list[Transmission], force: list[Number], compensation: list[Number]
) -> list[Number]:
  """Return the joint forces of the actuators, with gravity compensation, within the joints' limits."""
  total = [c if model.jnt_actgravcomp[model.dof_jntid[dof]] else 0.0 for dof, c in enumerate(compensation)]
  for line, f in zip(lines, force, strict=True):
    for dof, arm in line.moment.items():
      total[dof] = total[dof] + f * arm
  for joint in range(model.njnt):
    if model.jnt_actfrclimited[joint]:
      dof = int(model.jnt_dofadr[joint])
      total[dof] = clip(total[dof], *map(number, model.jnt_actfrcrange[joint]))
  return total


def _is_at_limit(force: Number, span: Floats) -> Truth:
  low, high = map(number, span)
  return (force <= low + ROUNDING * absolute(low)) | (force >= high - ROUNDING * absolute(high))
