"""Gripper of an arm: the joints that open it, its fingertips, its width, and where it points."""

import dataclasses
import itertools
import math
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtEq

from physics.model.model import Floats
from physics.robot.description import Asked
from physics.robot.end_effector import Tip
from physics.robot.prepare import corners, put_site
from physics.robot.servo import ROTOR, Gains, Servo, put_servos, servos_of
from physics.robot.skeleton import Skeleton
from physics.robot.source import ON_JOINT, SCALAR, compiled, leave_out_equalities, pulled_joints

GRASP, GRIPS = "grasp point", ("left fingertip", "right fingertip")  # sites: between the fingertips, on each
FORCE = 5.0, 10.0  # of a finger: the file's, but not less and not more than these [N]
LEVER = 0.1  # of a finger that turns [m]
GIVES = 0.25  # part of its range by which a finger yields to its largest force
SETTLE, STEPS, PATH = 1.0, 0.3, 24  # time to open, and to close by one of as many steps [s]
TIP = 0.15  # length of the tip of a finger, over the finger's
OPPOSED = 0.8  # reach of a body beyond the palm over the furthest one's, above which it is a finger's end
OPENS = 0.7  # rotation of the tips from where they meet, above which they push a cube away [rad]
ROLLS = 0.9  # cosine of the last joint's axis to the fingers, above which it rolls the hand
SHARE, LARGEST = 0.6, 0.05  # side of a cube: over the width, and at most [m]
DEPTH = 0.4  # of the tips below the middle of a cube, over its side: they stay above the table


@dataclasses.dataclass(frozen=True)
class Gripper:
  """Gripper of two fingers, or of one and the hand."""

  servos: tuple[Servo, ...]  # of the joints that open it
  opened: Floats  # targets of these when it is open [n] [rad, m]
  closed: Floats  # [n] [rad, m]
  width: float  # distance between the open fingertips [m]
  side: float  # of the cube that it is to grasp [m]
  pose: dict[int, float]  # positions of its joints when it is open, by joint [rad, m]
  grip: dict[str, float]  # the same when it holds the cube, by name
  equalities: frozenset[int]  # that couple its parts
  bodies: tuple[str, ...]  # that touch the cube: the hand and all beyond
  sites: tuple[tuple[str, Floats, Floats], ...]  # body, position [m] and quaternion of GRASP and GRIPS

  def words(self) -> str:
    """Return the description in one line."""
    names = ", ".join(servo.joint for servo in self.servos)
    return f"gripper opened by {names} to {100 * self.width:.2g} cm, for a cube of {100 * self.side:.2g} cm"

  def put_sites(self, spec: mujoco.MjSpec) -> None:
    """Give a robot the sites GRASP and GRIPS; their z axis points where the hand does."""
    for name, (body, place, quat) in zip((GRASP, *GRIPS), self.sites, strict=True):
      put_site(spec, name, body, pos=place, quat=quat)


def find_gripper(
  spec: mujoco.MjSpec, skeleton: Skeleton, tip: Tip, asked: Asked, doubts: list[str]
) -> Gripper:
  """Return the gripper beyond the last link of an arm.

  Raises ValueError if there is none, if it has more than two fingers, or if the cube asked for is too wide.
  """
  mj = skeleton.mj
  hand = int(mj.jnt_bodyid[tip.joints[-1]])
  bodies = [body for body in skeleton.bodies if hand in skeleton.chain(body)]
  moving = [body for body in bodies if mj.body_weldid[body] != mj.body_weldid[hand]]
  scalar = np.isin(mj.jnt_type, SCALAR) & np.isin(mj.jnt_bodyid, moving)
  joints = np.flatnonzero(scalar).tolist()
  if not joints:
    raise ValueError(
      f"{asked.path}: no joint moves beyond '{skeleton.body_name(hand)}', so it has no gripper: name the "
      "arm's joints without the gripper's as env.joints=[...], or let it reach: task=reach"
    )
  own = {int(mjtEq.mjEQ_JOINT): joints, int(mjtEq.mjEQ_CONNECT): bodies, int(mjtEq.mjEQ_WELD): bodies}
  kinds = mj.eq_type.tolist()
  equalities = frozenset(i for i, kind in enumerate(kinds) if _coupled(mj, i) <= {*own.get(kind, [])})
  servos = _servos(skeleton, joints, asked, doubts)
  rig = _Rig(spec, skeleton, servos, equalities)
  rig.find_tips(bodies, moving, asked.path)
  grasp = rig.grasp(hand, asked.cube_size)
  if grasp["side"] > grasp["width"]:
    raise ValueError(
      f"{asked.path}: a cube of {100 * grasp['side']:.3g} cm does not fit into its gripper, which opens to "
      f"{100 * grasp['width']:.3g} cm: write env.cube_size={SHARE * grasp['width']:.2g}"
    )
  pose, grip = (grasp.pop(name)[mj.jnt_qposadr[joints]].tolist() for name in ("pose", "grip"))
  return Gripper(
    servos=tuple(servos),
    pose=dict(zip(joints, pose, strict=True)),
    grip=dict(zip(map(skeleton.joint_name, joints), grip, strict=True)),
    equalities=equalities,
    bodies=tuple(map(skeleton.body_name, bodies)),
    **grasp,
  )


def _coupled(mj: mujoco.MjModel, equality: int) -> set[int]:
  """Return the joints or bodies that an equality constraint couples."""
  pair = np.array([mj.eq_obj1id[equality], mj.eq_obj2id[equality]])
  return {*(mj.site_bodyid[pair] if mj.eq_objtype[equality] == mujoco.mjtObj.mjOBJ_SITE else pair).tolist()}


def _servos(skeleton: Skeleton, joints: list[int], asked: Asked, doubts: list[str]) -> list[Servo]:
  """Return servos for the joints with an actuator; without any, for those that follow no other."""
  mj, arm = skeleton.mj, skeleton.joints
  on_joint = np.isin(mj.actuator_trntype, ON_JOINT)
  pulled = {*mj.actuator_trnid[on_joint, 0].tolist(), *pulled_joints(mj)}
  followers = {*mj.eq_obj1id[mj.eq_type == mjtEq.mjEQ_JOINT].tolist()}
  driven = [joint for joint in joints if joint in pulled] or [j for j in joints if j not in followers]
  if free := [skeleton.joint_name(joint) for joint in driven if not mj.jnt_limited[joint]]:
    raise ValueError(f"{asked.path}: '{free[0]}' opens the gripper and has no limits: give it a range")
  levers = {joint: LEVER if mj.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE else 1.0 for joint in driven}

  def force(joint: int, effort: float) -> float:
    return float(np.clip(effort, FORCE[0] * levers[joint], FORCE[1] * levers[joint]))

  def guess(joint: int, effort: float) -> Gains:
    stiffness = force(joint, effort) / (GIVES * float(np.ptp(mj.jnt_range[joint])))
    mass = mj.dof_M0[mj.jnt_dofadr[joint]] + ROTOR * stiffness
    return Gains(stiffness, 2.0 * math.sqrt(stiffness * mass))

  skeleton.move(driven)
  found = servos_of(skeleton, dataclasses.replace(asked, stiffness=None, damping=None), guess, doubts)
  skeleton.move(arm)
  pairs = zip(driven, found, strict=True)
  return [dataclasses.replace(servo, effort=force(joint, servo.effort)) for joint, servo in pairs]


class _Rig:
  """The gripper alone, without weight or contacts, on an arm that does not move."""

  tips: list[tuple[int, Floats]]  # bodies of both tips, and points of their shapes there [n, 3] [m]

  def __init__(
    self, spec: mujoco.MjSpec, skeleton: Skeleton, servos: list[Servo], equalities: frozenset[int]
  ) -> None:
    """Build it in the pose of the skeleton."""
    spec = spec.copy()
    leave_out_equalities(spec, set(), equalities)
    put_servos(spec, servos, [])
    spec.option.gravity, spec.option.timestep = [0, 0, 0], 2e-3
    spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    self.mj, self.start = compiled(spec, ""), skeleton.data.qpos.copy()
    self.data = mujoco.MjData(self.mj)
    self.spans = [servo.span for servo in servos if servo.span is not None]
    self.columns, self.dofs = skeleton.columns, self.mj.jnt_dofadr[skeleton.joints]
    last = skeleton.joints[-1]
    self.origin, self.axis = skeleton.data.xanchor[last].copy(), skeleton.data.xaxis[last].copy()
    self._take(self.start)

  def find_tips(self, bodies: list[int], moving: list[int], path: str) -> None:
    """Find the ends of two fingers, or of one and of the hand, which do not move against each other."""
    points = {body: self._points(body) for body in bodies}
    ends = {body: np.linalg.norm(p - self.origin, axis=1) for body, p in points.items() if len(p)}
    beyond = np.concatenate([[], *(ends[body] for body in moving if body in ends)])
    least = beyond.min() + OPPOSED * float(np.ptp(beyond)) if len(beyond) else math.inf
    fingers = [body for body in moving if body in ends and ends[body].max() > least]
    rest = sorted({*ends} - {*moving}, key=lambda body: -ends[body].max())
    pair = [*fingers, *rest[:1]] if len(fingers) == 1 else fingers
    if len(pair) != 2:
      raise ValueError(
        f"{path}: {len(pair)} fingers of its hand have shapes that collide: a gripper has one or two"
      )
    self.tips = []
    for body in pair:
      at_end = ends[body] > ends[body].max() - TIP * np.ptp(ends[body])
      self.tips.append((body, self._local(body, points[body][at_end])))

  def close(self) -> tuple[Floats, list[Floats], Floats]:
    """Return targets from open to closed [PATH, n], poses [nq] until the tips meet, and where [3] [m]."""
    ends = {}
    for targets in itertools.product(*self.spans):
      self._take(self.start)
      self._wait(targets, SETTLE)
      ends[targets] = self._gap()[0]
    steps = np.linspace(max(ends, key=ends.__getitem__), min(ends, key=ends.__getitem__), PATH)
    self._take(self.start)
    self._wait(steps[0], SETTLE)
    path = []
    for target in steps:
      self._wait(target, STEPS)
      path.append(self.data.qpos.copy())
      gap, meeting = self._gap()
      if gap <= 0:
        break
    return steps, path, meeting

  def grasp(self, hand: int, side: float | None) -> dict[str, Any]:
    """Return width [m], cube side [m], targets, poses and sites of a grasp; no side: of SHARE."""
    steps, path, meeting = self.close()
    # Where the tips meet, one point is on both; then it moves with each of them.
    bodies = [body for body, _ in self.tips]
    local = [self._local(body, meeting) for body in bodies]
    pairs, turns = [], []
    for qpos in path:
      self._take(qpos)
      pairs.append([self._world(body, point) for body, point in zip(bodies, local, strict=True)])
      turns.append(np.subtract(*self.data.xmat[bodies]))
    # The norm of the difference of two rotations by a small angle is the angle times the root of 2.
    start = int((np.linalg.norm(np.array(turns) - turns[-1], axis=1) <= OPENS * math.sqrt(2)).argmax())
    gaps = [float(np.linalg.norm(one - other)) for one, other in pairs]
    side = side or min(SHARE * gaps[start], LARGEST)
    at = min(range(start, len(gaps)), key=lambda step: abs(gaps[step] - side))
    self._take(path[at])
    turn = self._turn(*pairs[at])
    sites = list[tuple[str, Floats, Floats]]()
    for body, point in zip((hand, *bodies), (np.mean(pairs[at], axis=0), *pairs[at]), strict=True):
      quat = np.zeros(4)
      mujoco.mju_mat2Quat(quat, (self.data.xmat[body].reshape(3, 3).T @ turn).ravel())
      sites.append((self.mj.body(body).name, self._local(body, point - DEPTH * side * turn[:, 2]), quat))
    return {
      "width": gaps[start],
      "side": side,
      "opened": steps[start],
      "closed": steps[-1],
      "pose": path[start],
      "grip": path[at],
      "sites": tuple(sites),
    }

  def _turn(self, one: Floats, other: Floats) -> Floats:
    """Return the axes [3, 3] of a grasp between two points: y to the first one, z away from the wrist."""
    y = (one - other) / np.linalg.norm(one - other)
    ahead = (one + other) / 2 - self.origin
    if abs(ahead @ self.axis) > ROLLS * np.linalg.norm(ahead):
      ahead = self.axis * np.sign(ahead @ self.axis)
    z = ahead - (ahead @ y) * y
    z /= np.linalg.norm(z)
    return np.stack([np.cross(y, z), y, z], 1)

  def _gap(self) -> tuple[float, Floats]:
    """Return the distance between the surfaces of the tips [m], and the point in its middle [3] [m]."""
    one, other = (self._world(body, points) for body, points in self.tips)
    middles = [(points.min(0) + points.max(0)) / 2 for points in (one, other)]
    way = (middles[0] - middles[1]) / np.linalg.norm(middles[0] - middles[1])
    low, high = (other @ way).max(), (one @ way).min()
    middle = np.mean(middles, axis=0)
    return high - low, middle + way * ((low + high) / 2 - middle @ way)

  def _points(self, body: int) -> Floats:
    """Return corners of the shapes of a body that collide: of meshes, or of boxes around them [n, 3] [m]."""
    mj, found = self.mj, [np.zeros((0, 3))]
    for geom in np.flatnonzero((mj.geom_bodyid == body) & ((mj.geom_contype | mj.geom_conaffinity) > 0)):
      if mj.geom_type[geom] != mujoco.mjtGeom.mjGEOM_MESH:
        found.append(corners(mj, self.data, [int(geom)]))
        continue
      mesh = mj.geom_dataid[geom]
      points = mj.mesh_vert[mj.mesh_vertadr[mesh] :][: mj.mesh_vertnum[mesh]]
      found.append(points @ self.data.geom_xmat[geom].reshape(3, 3).T + self.data.geom_xpos[geom])
    return np.concatenate(found)

  def _local(self, body: int, points: Floats) -> Floats:
    """Return points of the world [..., 3] [m] in the frame of a body."""
    return (points - self.data.xpos[body]) @ self.data.xmat[body].reshape(3, 3)

  def _world(self, body: int, points: Floats) -> Floats:
    """Return points of a body [..., 3] [m] in the world."""
    return points @ self.data.xmat[body].reshape(3, 3).T + self.data.xpos[body]

  def _take(self, qpos: Floats) -> None:
    mujoco.mj_resetData(self.mj, self.data)
    self.data.qpos[:] = qpos
    mujoco.mj_kinematics(self.mj, self.data)

  def _wait(self, targets: Any, seconds: float) -> None:
    self.data.ctrl[:] = targets
    for _ in range(round(seconds / self.mj.opt.timestep)):
      mujoco.mj_step(self.mj, self.data)
      self.data.qpos[self.columns], self.data.qvel[self.dofs] = self.start[self.columns], 0.0
    mujoco.mj_kinematics(self.mj, self.data)
