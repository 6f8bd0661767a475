"""Clips of our own for any robot with two legs, made from the plans of `plan.py`.

The centre of mass moves as the ground pushes it: in the line from the foot that carries it, under gravity
(Kajita et al. 2003, the cart-table model, with a height that changes). Inverse kinematics gives the joints.
In a flight trunk and limbs move so that the angular momentum is constant.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

import physics
from physics import host
from physics.inverse_kinematics import Goal, follow
from physics.robot import Asked, LeggedRobot, read_legged
from physics.steady_momentum import steady
from tasks.core.errors import SettingError
from tasks.motion.clip import SLIDE, Clip, Floats, root_joint
from tasks.motion.plan import PLANS, Plan
from tasks.motion.rotation import exponential, multiply

GRAVITY = 9.81  # [m/s^2]
MIDDLE = 0.25  # of the way from home to the middle of its range, to which a joint of a leg is drawn
BEND = 0.08  # lowering of the centre of mass from home to standing, over the length of a leg
# Weights of squared errors: of feet and centre of mass [1/m^2], of the feet's turns [1/rad^2], and so on.
FEET, CENTRE, FLAT, TRUNK, HANDS = 3000.0, 3e4, 1000.0, 30.0, 10.0
FLIGHT, STANCE = 1.0, 1e-4  # of torques about the centre of mass without and with a foot down [1/(N m)^2]
LEGS, ARMS, WAIST = 0.1, 0.3, 10.0  # the same of distances of joints from home [1/rad^2]


@dataclass(frozen=True)
class Home:
  """What a plan needs of a robot at home; feet and hands are bodies, the left one first."""

  model: Any
  leg: float  # length [m]
  qpos: Floats  # [nq], with bent legs
  trunk: int  # body
  feet: list[int]
  hands: list[int]  # none of a robot without arms
  stiff: Floats  # weights of the distances of hinges and slides from home
  place: Floats  # of the frames of all bodies [nbody, 3] [m]
  turn: Floats  # of all bodies [nbody, 4]
  middle: Floats  # centres of mass of all bodies [nbody, 3] [m]
  soles: Floats  # middles of the two soles [2, 3] [m]
  centre: Floats  # of mass [3] [m]


@functools.lru_cache(maxsize=32)
def make(name: str, asked: Asked, fps: float) -> Clip:
  """Return the clip of a name for a robot; raise SettingError if the robot has not two legs."""
  robot, spec = read_legged(asked)
  if len(robot.feet) != 2:
    raise SettingError(
      f"env.motion={name} is for robots with two legs, {robot.path} has {len(robot.feet)}: name a file"
    )
  home = _home(robot, physics.load_model(spec))
  if name == "wave" and not home.hands:
    raise SettingError(f"env.motion=wave needs arms, {robot.path} has none: choose another clip")
  plan = PLANS[name](fps, GRAVITY / home.leg)
  goals = _goals(plan, home)
  qpos = follow(home.model, home.qpos, goals)
  flying = (plan.feet[..., 2] > 0.0).all(1)
  if flying.any():
    qpos = steady(home.model, qpos, goals, np.where(flying, FLIGHT, STANCE), 1 / fps)
  skip = round(plan.cut * fps)
  qpos = qpos[skip : len(qpos) - skip]
  root = int(home.model.jnt_qposadr[root_joint(home.model)])
  place = qpos[:, root : root + 3].copy()
  place[:, :2] -= place[0, :2].copy()
  columns = home.model.jnt_qposadr[[home.model.joint_id(joint) for joint in robot.joints]]
  return Clip(name, fps, place, qpos[:, root + 3 : root + 7], qpos[:, columns], robot.joints)


def _home(robot: LeggedRobot, model: Any) -> Home:
  """Return what plans need of a robot."""
  qpos = model.key_qpos[model.key_id("home")].copy()
  fields = ["xpos", "xquat", "xipos", "site_xpos", "subtree_com"]
  found = {name: values[0] for name, values in host.evaluate(model, {"qpos": qpos[None]}, fields).items()}
  sides = np.argsort([-found["site_xpos"][model.site_id(foot), 1] for foot in robot.feet])
  for joint in (model.joint_id(name) for leg in robot.legs for name in leg):
    column = model.jnt_qposadr[joint]  # straight knees could bend either way
    qpos[column] += MIDDLE * model.jnt_limited[joint] * (model.jnt_range[joint].mean() - qpos[column])
  root = int(model.jnt_bodyid[root_joint(model)])
  hands = _hands(model, robot, found["xipos"])
  return Home(
    model=model,
    leg=robot.leg_length,
    qpos=qpos,
    trunk=root,
    feet=[model.body_id(robot.feet_bodies[side]) for side in sides],
    hands=hands,
    stiff=_stiff(model, robot, hands),
    place=found["xpos"],
    turn=found["xquat"],
    middle=found["xipos"],
    soles=np.array([found["site_xpos"][model.site_id(robot.feet[side])] for side in sides]),
    centre=found["subtree_com"][root],
  )


def _hands(model: Any, robot: LeggedRobot, middle: Floats) -> list[int]:
  """Return the last bodies of the left and the right arm: those farthest aside that are not in a leg."""
  legs = {int(model.jnt_bodyid[model.joint_id(joint)]) for leg in robot.legs for joint in leg}
  last = [body for body in range(1, model.nbody) if body not in model.body_parentid and body not in legs]
  left = max(last, key=lambda body: float(middle[body, 1]), default=0)
  right = min(last, key=lambda body: float(middle[body, 1]), default=0)
  aside = 0.05 * robot.leg_length
  return [left, right] if middle[left, 1] > aside and middle[right, 1] < -aside else []


def _stiff(model: Any, robot: LeggedRobot, hands: list[int]) -> Floats:
  """Return the weights of the distances of hinges and slides from home: of legs, arms and trunk."""
  left, right = ({*_chain(model, hand)} for hand in hands) if hands else (set[int](), set[int]())
  arms, legs = left ^ right, {joint for leg in robot.legs for joint in leg}
  scalar = [joint for joint in range(model.njnt) if model.jnt_type[joint] >= SLIDE]

  def weight(joint: int) -> float:
    if model.joint_names[joint] in legs:
      return LEGS
    return ARMS if model.jnt_bodyid[joint] in arms else WAIST

  return np.array([weight(joint) for joint in scalar])


def _chain(model: Any, body: int) -> list[int]:
  """Return a body and those that carry it."""
  return [] if body == 0 else [body, *_chain(model, int(model.body_parentid[body]))]


def _goals(plan: Plan, home: Home) -> list[Goal]:
  """Return what the parts of a robot should follow."""
  shift = plan.feet.copy()
  shift[..., :3] *= home.leg
  between = home.place[home.feet].mean(0)
  yaws, trunk_yaw = plan.feet[..., 3], plan.feet[..., 3].mean(1)
  places, soles, goals = list[Floats](), list[Floats](), list[Goal]()
  for side, foot in enumerate(home.feet):
    for found, point in ((places, home.place[foot]), (soles, home.soles[side])):
      found.append(between + _turned(yaws[:, side], point - between) + shift[:, side, :3])
    goals.append(Goal("place", places[side], FEET, foot))
    goals.append(Goal("turn", _quaternions(yaws[:, side], home.turn[foot]), FLAT, foot))
  pushed = (plan.support[..., None] * np.stack(soles, 1)).sum(1)[:, :2]
  centre = centre_of_mass(plan.time, pushed, home.centre[2] + home.leg * (plan.height - BEND))
  goals.append(Goal("centre", centre, CENTRE))
  goals.append(Goal("turn", _quaternions(trunk_yaw, home.turn[home.trunk], plan.pitch), TRUNK, home.trunk))
  for side, hand in enumerate(home.hands):
    arm = home.middle[hand] - home.centre + home.leg * plan.hands[:, side]
    goals.append(Goal("middle", centre + _turned(trunk_yaw, arm), HANDS, hand))
  goals.append(Goal("pose", np.tile(home.qpos, (len(plan.time), 1)), home.stiff))
  return goals


def centre_of_mass(time: Floats, pushed: Floats, height: Floats) -> Floats:
  """Return the path of the centre of mass [T, 3] [m] at heights [T] over the points [T, 2] that push it.

  It is at rest over the first point and the last. In between x'' = (z'' + g) / z (x - p), so that the ground
  pushes in the line from p to x, by no more than it can: it does not pull.
  """
  step, n = time[1] - time[0], len(time)
  lift = np.gradient(np.gradient(height, time), time) + GRAVITY
  rate = step**2 * np.clip(lift, 0.0, None) / height
  matrix = np.diag(2.0 + rate) - np.eye(n, k=1) - np.eye(n, k=-1)
  right = rate[:, None] * pushed
  for end in (0, n - 1):
    matrix[end], matrix[end, end], right[end] = 0.0, 1.0, pushed[end]
  return np.concatenate([np.linalg.solve(matrix, right), height[:, None]], 1)


def _turned(yaw: Floats, vector: Floats) -> Floats:
  """Return vectors [3] or [T, 3] turned about z by angles [T] [rad]: [T, 3]."""
  x, y, z = np.broadcast_to(vector, (len(yaw), 3)).T
  return np.stack([np.cos(yaw) * x - np.sin(yaw) * y, np.sin(yaw) * x + np.cos(yaw) * y, z], 1)


def _quaternions(yaw: Floats, home: Floats, pitch: Floats | None = None) -> Floats:
  """Return the quaternions [T, 4] of a body with `home` [4] after a pitch and a yaw [T] [rad]."""
  zero = np.zeros_like(yaw)
  about_z = exponential(np.stack([zero, zero, yaw], 1))
  about_y = exponential(np.stack([zero, zero if pitch is None else pitch, zero], 1))
  return multiply(about_z, multiply(about_y, np.broadcast_to(home, about_y.shape)))
