"""Reader of a legged robot: its description, and a model ready to learn to walk."""

import contextlib
import functools
from typing import Any

import mujoco
import numpy as np

from physics.robot.description import Asked
from physics.robot.feet import ANKLE, Leg, NoLegs, beside, find_feet, legs_of, limbs, named_feet, phases
from physics.robot.home import ACROSS, bend, home_of_file, keyframes, lies
from physics.robot.legged import LeggedRobot
from physics.robot.mirror import mirror_of
from physics.robot.names import known_name, named_joints
from physics.robot.prepare import exclude_overlaps, finish, hold, make_round, sense, soles_at_home
from physics.robot.servo import (
  GRAVITY,
  facts,
  guess_by_load,
  put_servos,
  servos_of,
  standing_load,
  stiffness_of,
  targets_of,
)
from physics.robot.skeleton import Skeleton
from physics.robot.source import (
  compiled,
  driven_joints,
  keep_robot,
  open_robot,
  pulled_joints,
  root_of,
  set_collisions,
)
from physics.robot.warnings import frame_doubts, leg_doubts, motion_doubts, servo_doubts
from physics.robot.wheel import turning, wheels_of


@functools.lru_cache(maxsize=4)
def read_legged(asked: Asked) -> tuple[LeggedRobot, mujoco.MjSpec]:
  """Return a robot's description and its model: on a floor, with servos, sensors of feet, keyframe `home`.

  Do not change the model. Raises FileNotFoundError and ValueError for what cannot walk, in one line.
  """
  doubts: list[str] = []
  spec, skeleton, key = _opened(asked, doubts)
  legs = _legs(skeleton, asked, doubts)
  home = _home(skeleton, legs, asked, key, doubts, spec)
  leg_length = float(np.mean([skeleton.data.xanchor[leg.joints[0], 2] for leg in legs]))
  hold(spec, skeleton, held := _held(skeleton, asked))
  trunk, mass = _trunk(skeleton, asked), float(skeleton.mj.body_subtreemass[skeleton.root])
  wheels = wheels_of(skeleton, [leg for leg in legs if leg.wheel not in held], asked.path)
  carrying = stiffness_of(mass * GRAVITY, leg_length, len(legs))
  servos = servos_of(skeleton, asked, guess_by_load(skeleton, carrying), doubts, turning(wheels, mass))
  doubts += [*leg_doubts(skeleton, legs), *servo_doubts(skeleton, legs, servos, carrying)]
  put_servos(spec, servos, doubts)
  sense(spec, skeleton, legs)
  make_round(spec, skeleton, legs)
  stance = targets_of(skeleton, servos, None if home else standing_load(skeleton, legs))
  finish(spec, skeleton, stance, asked.timestep)
  model = compiled(spec, asked.path)
  doubts += [*frame_doubts(skeleton), *motion_doubts(model, len(legs))]
  robot = LeggedRobot(
    path=asked.path,
    trunk=trunk,
    **_feet(skeleton, legs, held),
    wheels=tuple(wheels.values()),
    quiet=_quiet(skeleton, legs, leg_length),
    guarded=_guarded(skeleton, trunk, legs),
    mirrored=mirror_of(skeleton),
    phases=phases(skeleton, legs),
    soles=soles_at_home(model, legs),
    angles=skeleton.data.qpos[skeleton.columns].copy(),
    stance=stance,
    home=home or "found",
    height=float(skeleton.data.xpos[skeleton.root][2]),
    leg_length=leg_length,
    mass=mass,
    **facts(servos),
    doubts=tuple(doubts),
  )
  return robot, spec


def _feet(skeleton: Skeleton, legs: list[Leg], held: list[int]) -> dict[str, Any]:
  """Return the fields of a description on feet; wheels that are `held` do not roll."""
  return {
    "feet": tuple(leg.name for leg in legs),
    "feet_bodies": tuple(skeleton.body_name(leg.body) for leg in legs),
    "legs": tuple(tuple(map(skeleton.joint_name, leg.joints)) for leg in legs),
    "rolling": tuple(leg.wheel >= 0 and leg.wheel not in held for leg in legs),
  }


def _opened(asked: Asked, doubts: list[str]) -> tuple[mujoco.MjSpec, Skeleton, str | None]:
  """Return a file's robot alone on a floor, its skeleton, and the keyframe of its pose, if any."""
  spec = open_robot(asked.path, doubts, floating=True)
  scene = compiled(spec, asked.path)
  name = scene.body(root_of(scene, asked.path)).name
  keep_robot(spec, name, doubts)
  set_collisions(spec, self_collision=asked.self_collision)
  mj = compiled(spec, asked.path)
  root = int(mj.body(name).id)
  skeleton = Skeleton(mj, root, driven_joints(mj, root, doubts))
  home = home_of_file(skeleton, keyframes(scene), asked.home, asked.path)
  skeleton.ground()
  return spec, skeleton, home


def _legs(skeleton: Skeleton, asked: Asked, doubts: list[str]) -> list[Leg]:
  """Return the legs, and move their joints that tendons pull."""
  own = skeleton.joints
  skeleton.move(list(dict.fromkeys([*own, *pulled_joints(skeleton.mj)])))
  legs = _found_legs(skeleton, asked)
  in_legs = {joint for leg in legs for joint in leg.joints} - {*own}
  skeleton.move([joint for joint in skeleton.joints if joint in own or joint in in_legs])
  if in_legs:
    doubts.append(f"{len(in_legs)} joints of legs that tendons pull get a servo each instead")
  return legs


def _found_legs(skeleton: Skeleton, asked: Asked) -> list[Leg]:
  """Return the legs that are asked for, or found.

  They are found at the present pose; if it is a crouch, upright; if they lie flat then, bent.
  """
  if asked.feet:
    return legs_of(skeleton, named_feet(skeleton, asked.feet, asked.path), asked.path)
  pose = skeleton.data.qpos.copy()
  with contextlib.suppress(NoLegs):
    legs = legs_of(skeleton, find_feet(skeleton, asked.path), asked.path)
    if not lies(skeleton, legs):
      return legs
  skeleton.relax()
  try:
    feet = find_feet(skeleton, asked.path)
  except NoLegs:
    bend(skeleton, limbs(skeleton))
    feet = find_feet(skeleton, asked.path)
  skeleton.take(pose)
  return legs_of(skeleton, feet, asked.path)


def _home(
  skeleton: Skeleton, legs: list[Leg], asked: Asked, key: str | None, doubts: list[str], spec: mujoco.MjSpec
) -> str | None:
  """Keep the pose of a keyframe and return its name, or bend the legs; exclude what overlaps then."""
  if key and not asked.home and lies(skeleton, legs):
    doubts.append(f"the robot lies in the keyframe '{key}': write env.home={key} to begin there nevertheless")
    skeleton.relax()
    key = None
  if key is None:
    bend(skeleton, legs)
  exclude_overlaps(spec, skeleton, doubts)
  return key


def _held(skeleton: Skeleton, asked: Asked) -> list[int]:
  """Return the joints that do not move because others are asked for; the skeleton moves these alone."""
  if not asked.joints:
    return []
  moved = skeleton.joints
  skeleton.move(named_joints(skeleton, asked))
  return [joint for joint in moved if joint not in skeleton.joints]


def _trunk(skeleton: Skeleton, asked: Asked) -> str:
  """Return the trunk: the body asked for, or the body of the free joint."""
  if asked.trunk is None:
    return skeleton.body_name(skeleton.root)
  return known_name(asked.trunk, map(skeleton.body_name, skeleton.bodies), "body", "env.trunk", asked.path)


def _guarded(skeleton: Skeleton, trunk: str, legs: list[Leg]) -> tuple[str, ...]:
  """Return the bodies other than trunk and feet with a shape that collides."""
  solid = {int(skeleton.mj.geom_bodyid[geom]) for geom in skeleton.shapes} - {leg.body for leg in legs}
  solid -= {*beside(skeleton, legs)}
  return tuple(name for name in map(skeleton.body_name, sorted(solid)) if name != trunk)


def _quiet(skeleton: Skeleton, legs: list[Leg], leg_length: float) -> tuple[str, ...]:
  """Return for two legs all joints but ankles and leg joints about the lateral axis."""
  if len(legs) > 2:
    return ()
  in_legs = {joint for leg in legs for joint in leg.joints}
  low = {joint for joint in in_legs if skeleton.data.xanchor[joint, 2] < ANKLE * leg_length}
  lively = low | {joint for joint in in_legs if abs(skeleton.axis(joint)[1]) > ACROSS}
  return tuple(skeleton.joint_name(joint) for joint in skeleton.joints if joint not in lively)
