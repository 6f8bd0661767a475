"""Servos of a robot: a position servo for each joint, with gains from the file, or guessed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import mujoco
import numpy as np
from mujoco import mjtBias, mjtDyn, mjtEq, mjtGain, mjtJoint, mjtTrn

from physics.model.model import Floats
from physics.robot.description import Asked
from physics.robot.feet import Leg
from physics.robot.skeleton import Skeleton
from physics.robot.source import ON_JOINT, pulled_joints

GRAVITY = 9.81  # [m/s^2]
YIELD = 0.5, 1.0  # least and greatest deflection at which a servo gives its largest torque [rad]
SLIDE = 0.05  # ratio of a slide joint's deflection to a hinge's [m/rad]
IMPLAUSIBLE = 10.0  # largest torque over that stiffness, above which the file's is a placeholder
LOAD = {2: 0.3}  # stiffness over weight times leg length between these limits, by the number of legs
LOAD_OF_MORE = 1.0  # the same of more legs
LAG = 0.025  # damping over stiffness [s]
SAG = 0.05  # deflection of an arm's servo under the largest weight that its joint carries [rad]
PACE = 20.0  # least natural frequency of an arm's servo [rad/s]
WRIST = 0.05  # least stiffness of an arm's servo, over its strongest's
NONE: Mapping[int, float] = MappingProxyType({})
ROTOR = 1.5e-4  # inertia of a rotor behind its gear over the servo's stiffness [s^2]


class Gains(NamedTuple):
  """Gains of a servo."""

  stiffness: float  # [N m/rad, N/m]
  damping: float  # [N m s/rad, N s/m]
  by_torque: bool = True  # whether the largest torque of the file was known and counted, if they are guessed


Guess: TypeAlias = Callable[[int, float], Gains]  # gains of a joint with a largest torque [N m, N]


@dataclass(frozen=True)
class Servo:
  """Servo of a joint: the torque is stiffness (target - angle) - damping speed, at most effort.

  A stiffness of 0 is a wheel's: its torque is damping (target - speed), with a target in rad/s.
  """

  joint: str
  stiffness: float  # [N m/rad, N/m]
  damping: float  # [N m s/rad, N s/m]
  effort: float  # [N m, N]; inf: unlimited
  span: Floats | None  # limits of the joint [2] [rad, m]; None: it turns freely


def standing_load(skeleton: Skeleton, legs: list[Leg]) -> Floats:
  """Return the forces [nv] [N m, N] that hold the present pose on the ground.

  The feet share the weight such that nothing tips over. The load is gravity and the forces at the feet.
  """
  mj, data = skeleton.mj, skeleton.data
  places = np.array([data.geom_xpos[list(leg.geoms)].mean(0) for leg in legs])
  centre = data.subtree_com[skeleton.root]
  balance = np.stack([np.ones(len(legs)), *(places[:, :2] - centre[:2]).T])
  weight = -mj.opt.gravity[2] * mj.body_subtreemass[skeleton.root]
  loads = np.linalg.pinv(balance) @ np.array([weight, 0, 0])
  torque = data.qfrc_bias.copy()
  jacobian = np.zeros((3, mj.nv))
  for leg, place, load in zip(legs, places, loads, strict=True):
    mujoco.mj_jac(mj, data, jacobian, None, place, leg.body)
    torque -= jacobian[2] * load
  return torque


def targets_of(skeleton: Skeleton, servos: list[Servo], load: Floats | None) -> Floats:
  """Return the targets of servos [nu] [rad, m] that hold the present pose under a load [nv] [N m, N].

  None: under none. Wheels stand still.
  """
  found, load = [], np.zeros(skeleton.mj.nv) if load is None else load
  for joint, servo in zip(skeleton.joints, servos, strict=True):
    if not servo.stiffness:
      found.append(0.0)
      continue
    needed = float(np.clip(load[skeleton.mj.jnt_dofadr[joint]], -servo.effort, servo.effort))
    target = float(skeleton.data.qpos[skeleton.mj.jnt_qposadr[joint]]) + needed / servo.stiffness
    found.append(target if servo.span is None else float(np.clip(target, *servo.span)))
  return np.array(found)


def stiffness_of(weight: float, leg_length: float, legs: int) -> float:
  """Return the stiffness [N m/rad] with which servos carry a robot of some weight [N]."""
  return LOAD.get(legs, LOAD_OF_MORE) * weight * leg_length


def guess_by_load(skeleton: Skeleton, carrying: float) -> Guess:
  """Return a guess of the gains of legs from the stiffness that carries them and the largest torque."""

  def guess(joint: int, effort: float) -> Gains:
    known = effort < IMPLAUSIBLE * carrying
    stiffness = float(np.clip(carrying, effort / YIELD[1], effort / YIELD[0])) if known else carrying
    stiffness /= SLIDE if skeleton.mj.jnt_type[joint] == mjtJoint.mjJNT_SLIDE else 1.0
    return Gains(stiffness, LAG * stiffness, by_torque=known)

  return guess


def guess_by_sag(skeleton: Skeleton, load: Floats, inertia: Floats) -> Guess:
  """Return a guess of the gains of an arm from the largest load [nv] [N m, N] and inertia [nv] of its joints.

  A servo sags little, is not slow, is not far weaker than the arm's strongest, and is damped critically.
  """
  carrying = np.maximum(load / SAG, inertia * PACE**2)
  least = WRIST * carrying[skeleton.mj.jnt_dofadr[skeleton.joints]].max()

  def guess(joint: int, effort: float) -> Gains:  # noqa: ARG001 (torque limits motion, not stiffness)
    dof = skeleton.mj.jnt_dofadr[joint]
    stiffness = float(max(carrying[dof], least))
    stiffness /= SLIDE if skeleton.mj.jnt_type[joint] == mjtJoint.mjJNT_SLIDE else 1.0
    return Gains(stiffness, 2.0 * math.sqrt(stiffness * (inertia[dof] + ROTOR * stiffness)), by_torque=False)

  return guess


def servos_of(
  skeleton: Skeleton, asked: Asked, guess: Guess, doubts: list[str], wheels: Mapping[int, float] = NONE
) -> list[Servo]:
  """Return the servos of a robot.

  Position actuators, of wheels velocity actuators, keep their gains, and all actuators their limits. Other
  gains are guessed; `wheels` are the guesses of damping by joint.
  """
  found, guessed = [], []
  for joint in skeleton.joints:
    effort, gains = _effort(skeleton.mj, joint), _gains_of_file(skeleton.mj, joint, joint in wheels)
    if gains is None:
      gains = Gains(0.0, wheels[joint]) if joint in wheels else guess(joint, effort)
      guessed.append(gains)
    stiffness = 0.0 if joint in wheels else asked.stiffness or gains.stiffness
    damping = gains.damping if asked.damping is None else asked.damping
    span = skeleton.mj.jnt_range[joint].copy() if skeleton.mj.jnt_limited[joint] else None
    found.append(Servo(skeleton.joint_name(joint), stiffness, damping, effort, span))
  if guessed and asked.stiffness is None:
    by_torque = all(gains.by_torque for gains in guessed)
    basis = "weight and largest torque" if by_torque else "the weight (write env.stiffness)"
    doubts.append(f"{len(guessed)} joints have no servo in the file: its gains are guessed from {basis}")
  return found


def facts(servos: list[Servo]) -> dict[str, Any]:
  """Return the fields of a description on servos."""
  return {
    "joints": tuple(servo.joint for servo in servos),
    "stiffness": np.array([servo.stiffness for servo in servos]),
    "damping": np.array([servo.damping for servo in servos]),
    "effort": np.array([servo.effort for servo in servos]),
  }


def put_servos(spec: mujoco.MjSpec, servos: list[Servo], doubts: list[str]) -> None:
  """Replace all actuators by servos; joints without a rotor's inertia get some."""
  for actuator in list(spec.actuators):
    spec.delete(actuator)
  coupling = [equality for equality in spec.equalities if equality.type == mjtEq.mjEQ_TENDON]
  coupled = {name for equality in coupling for name in (equality.name1, equality.name2)}
  for tendon in [tendon for tendon in spec.tendons if tendon.name not in coupled]:
    spec.delete(tendon)
  light = []
  for servo in servos:
    joint = spec.joint(servo.joint)
    added = spec.add_actuator(name=servo.joint, target=servo.joint, trntype=mjtTrn.mjTRN_JOINT)
    if servo.stiffness:
      added.set_to_position(kp=servo.stiffness, kv=servo.damping)
    else:
      added.set_to_velocity(kv=servo.damping)
    added.gear, added.inheritrange = [1, 0, 0, 0, 0, 0], 0.0
    added.ctrllimited, added.ctrlrange = servo.span is not None, [0, 0] if servo.span is None else servo.span
    finite = np.isfinite(servo.effort)
    added.forcelimited, added.forcerange = finite, [-servo.effort, servo.effort] if finite else [0, 0]
    if not np.any(joint.armature):
      joint.armature = ROTOR * (servo.stiffness or servo.damping / LAG)
      light.append(servo.joint)
  if light:
    doubts.append(
      f"{len(light)} joints have no armature in the file: it is guessed from the servos' stiffness"
    )


def _actuator(mj: mujoco.MjModel, joint: int) -> int | None:
  on_joint = np.isin(mj.actuator_trntype, ON_JOINT)
  return next(iter(np.flatnonzero(on_joint & (mj.actuator_trnid[:, 0] == joint)).tolist()), None)


def _gains_of_file(mj: mujoco.MjModel, joint: int, wheel: bool) -> Gains | None:
  """Return the gains of the position actuator of a joint, of a wheel the velocity actuator's; None: none."""
  actuator = _actuator(mj, joint)
  if actuator is None:
    return None
  gain, bias, gear = mj.actuator_gainprm[actuator], mj.actuator_biasprm[actuator], _gear(mj, actuator)
  servo = mj.actuator_gaintype[actuator] == mjtGain.mjGAIN_FIXED
  servo &= mj.actuator_biastype[actuator] == mjtBias.mjBIAS_AFFINE
  servo &= mj.actuator_dyntype[actuator] == mjtDyn.mjDYN_NONE
  if not servo or gain[0] <= 0 or gain[0] != -bias[2 if wheel else 1] or (wheel and bias[1]):
    return None
  return Gains(float(abs(bias[1]) * gear**2), float(abs(bias[2]) * gear**2))


def _effort(mj: mujoco.MjModel, joint: int) -> float:
  """Return the largest torque of a joint's actuator [N m, N], inf if the file gives none."""
  actuator = _actuator(mj, joint)
  pulling = pulled_joints(mj).get(joint, []) if actuator is None else [(actuator, 1.0)]
  limit = sum(abs(coefficient) * _limit(mj, one) for one, coefficient in pulling) if pulling else np.inf
  return min(limit, float(np.abs(mj.jnt_actfrcrange[joint]).max()) if mj.jnt_actfrclimited[joint] else np.inf)


def _limit(mj: mujoco.MjModel, actuator: int) -> float:
  """Return the largest force of an actuator on its joint or tendon [N m, N], inf if the file gives none."""
  limits, gear = [np.inf], abs(_gear(mj, actuator))
  if mj.actuator_forcelimited[actuator]:
    limits.append(gear * float(np.abs(mj.actuator_forcerange[actuator]).max()))
  if mj.actuator_biastype[actuator] == mjtBias.mjBIAS_NONE and mj.actuator_ctrllimited[actuator]:
    gain = abs(float(mj.actuator_gainprm[actuator, 0]))
    limits.append(gear * gain * float(np.abs(mj.actuator_ctrlrange[actuator]).max()))
  return min(limits)


def _gear(mj: mujoco.MjModel, actuator: int) -> float:
  return float(mj.actuator_gear[mj.actuator_outadr[actuator], 0])
