"""Servos of a robot: a position servo for each joint, with the gains of the file or worked out."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import mjtBias, mjtDyn, mjtGain, mjtJoint, mjtTrn

from physics.model.model import Floats
from physics.robot.feet import Leg
from physics.robot.legged import Asked
from physics.robot.skeleton import Skeleton
from physics.robot.source import ON_JOINT

GRAVITY = 9.81  # [m/s^2]
YIELD = 0.5, 1.0  # least and greatest deflection at which a servo gives its largest torque [rad]
SLIDE = 0.05  # the same of a slide joint over that of a hinge [m/rad]
IMPLAUSIBLE = 10.0  # largest torque over that stiffness, above which a file only says that it knows none
LOAD = {2: 0.3}  # stiffness over weight times leg length between these limits, by the number of legs
LOAD_OF_MORE = 1.0  # the same of more legs
LAG = 0.025  # damping over stiffness [s]
ROTOR = 1.5e-4  # inertia of a rotor behind its gear over the servo's stiffness [s^2]


@dataclass(frozen=True)
class Servo:
  """Servo of a joint: the torque is stiffness (target - angle) - damping speed, at most effort."""

  joint: str
  stiffness: float  # [N m/rad, N/m]
  damping: float  # [N m s/rad, N s/m]
  effort: float  # [N m, N]; inf: unlimited
  span: Floats | None  # limits of the joint [2] [rad, m]; None: it turns freely


def targets_of(skeleton: Skeleton, legs: list[Leg], servos: list[Servo]) -> Floats:
  """Return the targets of servos [nu] [rad, m] that hold the present pose on the ground.

  The feet share the weight such that nothing tips over. What a servo pulls by its stiffness is the rest of
  gravity and the forces at the feet.
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
  found = []
  for joint, servo in zip(skeleton.joints, servos, strict=True):
    needed = float(np.clip(torque[mj.jnt_dofadr[joint]], -servo.effort, servo.effort))
    target = float(data.qpos[mj.jnt_qposadr[joint]]) + needed / servo.stiffness
    found.append(target if servo.span is None else float(np.clip(target, *servo.span)))
  return np.array(found)


def stiffness_of(weight: float, leg_length: float, legs: int) -> float:
  """Return the stiffness [N m/rad] with which servos carry a robot of some weight [N]."""
  return LOAD.get(legs, LOAD_OF_MORE) * weight * leg_length


def servos_of(skeleton: Skeleton, asked: Asked, carrying: float, doubts: list[str]) -> list[Servo]:
  """Return the servos of a robot; `carrying` is the stiffness that its weight asks for [N m/rad].

  Position actuators keep their gains, and all actuators their limits. Other gains follow from the weight and
  from the largest torque.
  """
  found, made, unknown = [], [], []
  for joint in skeleton.joints:
    name, effort = skeleton.joint_name(joint), _effort(skeleton.mj, joint)
    known = effort < IMPLAUSIBLE * carrying
    gains = _gains_of_file(skeleton.mj, joint)
    if gains is None:
      made.append(name)
      unknown += [] if known else [name]
      stiffness = float(np.clip(carrying, effort / YIELD[1], effort / YIELD[0])) if known else carrying
      stiffness /= SLIDE if skeleton.mj.jnt_type[joint] == mjtJoint.mjJNT_SLIDE else 1.0
      gains = stiffness, LAG * stiffness
    stiffness, damping = (asked.stiffness or gains[0]), gains[1] if asked.damping is None else asked.damping
    span = skeleton.mj.jnt_range[joint].copy() if skeleton.mj.jnt_limited[joint] else None
    found.append(Servo(name, stiffness, damping, effort, span))
  if made and asked.stiffness is None:
    doubts.append(
      f"{len(made)} joints have no servo in the file: its gains are guessed from {_basis(unknown)}"
    )
  return found


def put_servos(spec: mujoco.MjSpec, servos: list[Servo], doubts: list[str]) -> None:
  """Replace all actuators by servos; joints without a rotor's inertia get some."""
  for actuator in list(spec.actuators):
    spec.delete(actuator)
  for tendon in list(spec.tendons):
    spec.delete(tendon)
  light = []
  for servo in servos:
    joint = spec.joint(servo.joint)
    added = spec.add_actuator(name=servo.joint, target=servo.joint, trntype=mjtTrn.mjTRN_JOINT)
    added.set_to_position(kp=servo.stiffness, kv=servo.damping)
    added.gear, added.inheritrange = [1, 0, 0, 0, 0, 0], 0.0
    added.ctrllimited, added.ctrlrange = servo.span is not None, [0, 0] if servo.span is None else servo.span
    finite = np.isfinite(servo.effort)
    added.forcelimited, added.forcerange = finite, [-servo.effort, servo.effort] if finite else [0, 0]
    if not np.any(joint.armature):
      joint.armature = ROTOR * servo.stiffness
      light.append(servo.joint)
  if light:
    doubts.append(
      f"{len(light)} joints have no armature in the file: it is guessed from the servos' stiffness"
    )


def _basis(unknown: list[str]) -> str:
  return "the weight (write env.stiffness)" if unknown else "weight and largest torque"


def _actuator(mj: mujoco.MjModel, joint: int) -> int | None:
  on_joint = np.isin(mj.actuator_trntype, ON_JOINT)
  return next(iter(np.flatnonzero(on_joint & (mj.actuator_trnid[:, 0] == joint)).tolist()), None)


def _gains_of_file(mj: mujoco.MjModel, joint: int) -> tuple[float, float] | None:
  """Return stiffness and damping of the position actuator of a joint, or None if it has none."""
  actuator = _actuator(mj, joint)
  if actuator is None:
    return None
  gain, bias, gear = mj.actuator_gainprm[actuator], mj.actuator_biasprm[actuator], _gear(mj, actuator)
  servo = mj.actuator_gaintype[actuator] == mjtGain.mjGAIN_FIXED
  servo &= mj.actuator_biastype[actuator] == mjtBias.mjBIAS_AFFINE
  servo &= mj.actuator_dyntype[actuator] == mjtDyn.mjDYN_NONE
  if not servo or gain[0] <= 0 or gain[0] != -bias[1]:
    return None
  return float(gain[0] * gear**2), float(abs(bias[2]) * gear**2)


def _effort(mj: mujoco.MjModel, joint: int) -> float:
  """Return the largest torque of a joint's actuator [N m, N], inf if the file gives none."""
  limits = [np.inf]
  actuator = _actuator(mj, joint)
  if mj.jnt_actfrclimited[joint]:
    limits.append(float(np.abs(mj.jnt_actfrcrange[joint]).max()))
  if actuator is not None:
    gear = abs(_gear(mj, actuator))
    if mj.actuator_forcelimited[actuator]:
      limits.append(gear * float(np.abs(mj.actuator_forcerange[actuator]).max()))
    if mj.actuator_biastype[actuator] == mjtBias.mjBIAS_NONE and mj.actuator_ctrllimited[actuator]:
      gain = abs(float(mj.actuator_gainprm[actuator, 0]))
      limits.append(gear * gain * float(np.abs(mj.actuator_ctrlrange[actuator]).max()))
  return min(limits)


def _gear(mj: mujoco.MjModel, actuator: int) -> float:
  return float(mj.actuator_gear[mj.actuator_outadr[actuator], 0])
