"""Warnings about a robot's frame, servos and home pose."""

from collections.abc import Iterator

import mujoco
import numpy as np

from physics.robot.end_effector import FEWEST, Tip
from physics.robot.feet import ANKLE, Leg, beside
from physics.robot.servo import Servo
from physics.robot.skeleton import Skeleton

UPRIGHT = 0.9  # cosine of the trunk's tilt, above which it is upright
SECONDS = 1.0  # for which an arm, or a robot of more than two legs, should stay at home [s]
SAGS = 0.02  # distance by which the tip of an arm may move at home [m]
STANDS = 0.8  # cosine of the tilt, and share of the height, above which it stands
SOFT = 1 / 3  # stiffness of a servo over the stiffness that carries the weight, below which it is soft
FAST = 0.5  # square of the time step over a servo's period / 2 pi, above which it may shake


def frame_doubts(skeleton: Skeleton) -> Iterator[str]:
  """Warn of a trunk with a z axis that does not point up, and of feet along its y axis."""
  if skeleton.data.xmat[skeleton.root][8] < UPRIGHT:
    yield "the z axis of the trunk does not point up at home, as walking asks for"
  axes = np.abs([skeleton.axis(joint) for joint in skeleton.joints]).mean(0)
  if axes[0] > 2 * axes[1]:
    yield "most joints turn about the trunk's x axis, which should point forwards"


def leg_doubts(skeleton: Skeleton, legs: list[Leg]) -> Iterator[str]:
  """Warn of feet of several bodies."""
  if unfelt := [skeleton.body_name(body) for body in beside(skeleton, legs)]:
    yield f"{len(unfelt)} more bodies of feet touch the ground unfelt, such as '{unfelt[0]}': see env.feet"


def servo_doubts(skeleton: Skeleton, legs: list[Leg], servos: list[Servo], carrying: float) -> Iterator[str]:
  """Warn of leg servos above the ankles without a limit, or far softer than `carrying` [N m/rad]."""
  low = {joint: ANKLE * skeleton.start(leg.body) for leg in legs for joint in leg.joints}
  pairs = zip(skeleton.joints, servos, strict=True)
  upper = [servo for joint, servo in pairs if skeleton.data.xanchor[joint, 2] >= low.get(joint, np.inf)]
  soft = [servo.joint for servo in upper if 0 < servo.stiffness < SOFT * carrying]
  strong = [servo.joint for servo in upper if np.isinf(servo.effort)]
  if soft:
    yield f"{len(soft)} servos of legs are soft, such as '{soft[0]}': {carrying:.2g} N m/rad carry the robot"
  if strong:
    yield f"{len(strong)} joints of legs have no largest torque, such as '{strong[0]}': add a forcerange"


def motion_doubts(mj: mujoco.MjModel, legs: int) -> Iterator[str]:
  """Warn of servos too stiff for the time step, and of a home pose in which the robot does not stand."""
  data = _at_home(mj)
  yield from _stiffness_doubts(mj, data)
  height = data.subtree_com[1, 2]
  _wait(mj, data)
  if legs > 2 and not (data.xmat[1][8] > STANDS and data.subtree_com[1, 2] > STANDS * height):
    yield "at home it falls within a second: give a pose in which it stands as a keyframe"


def other_arm_doubts(skeleton: Skeleton, tip: Tip) -> Iterator[str]:
  """Warn of another chain of joints on the base that is long enough for an arm."""
  last = int(skeleton.mj.jnt_bodyid[tip.joints[-1]])
  arm = skeleton.chain(last)
  apart = [body for body in skeleton.bodies if body not in arm and last not in skeleton.chain(body)]
  joints = {body: len({*skeleton.drive(body)} - {*skeleton.drive(last)}) for body in apart}
  if other := next((body for body in apart if joints[body] > FEWEST), None):
    name = next(skeleton.body_name(body) for body in skeleton.chain(other) if body in apart)
    yield f"another arm stays at home, from '{name}' on: env.site=<its tip> reaches with it"


def arm_doubts(mj: mujoco.MjModel, site: str) -> Iterator[str]:
  """Warn of servos too stiff for the time step, and of an arm that does not hold its home pose."""
  data = _at_home(mj)
  yield from _stiffness_doubts(mj, data)
  place = data.site(site).xpos.copy()
  _wait(mj, data)
  moved = float(np.linalg.norm(data.site(site).xpos - place))
  if not moved < SAGS:
    yield f"at home the tip moves by {100 * moved:.2g} cm within a second: look at env.home and env.stiffness"


def _at_home(mj: mujoco.MjModel) -> mujoco.MjData:
  """Return the state of the first keyframe."""
  data = mujoco.MjData(mj)
  mujoco.mj_resetDataKeyframe(mj, data, 0)
  mujoco.mj_forward(mj, data)
  return data


def _wait(mj: mujoco.MjModel, data: mujoco.MjData) -> None:
  """Simulate for `SECONDS`."""
  for _ in range(round(SECONDS / mj.opt.timestep)):
    mujoco.mj_step(mj, data)


def _stiffness_doubts(mj: mujoco.MjModel, data: mujoco.MjData) -> Iterator[str]:
  inverse = np.zeros((mj.nv, mj.nv))
  mujoco.mj_solveM(mj, data, inverse, np.eye(mj.nv))
  dofs = mj.jnt_dofadr[mj.actuator_trnid[:, 0]]
  fast = -mj.actuator_biasprm[:, 1] * np.diag(inverse)[dofs] * mj.opt.timestep**2
  if fast.max() > FAST:
    stiff = mj.actuator(int(fast.argmax())).name
    yield f"the servo of '{stiff}' is stiff for a time step of {mj.opt.timestep:g} s: add env.substeps=8"
