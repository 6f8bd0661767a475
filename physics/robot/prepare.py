"""Preparation of a robot for training: foot sensors, a site, held joints, keyframe, time step."""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtCone, mjtGeom, mjtIntegrator, mjtObj, mjtSensor

from physics.model.model import Floats
from physics.robot.feet import Foot, Leg
from physics.robot.home import positions
from physics.robot.skeleton import Skeleton
from physics.robot.source import carrier

GROWN, MARGIN = 1.1, 0.004  # of the zone in which a foot senses contacts: factor, and [m]
ITERATIONS = 100  # most steps of the solver; it seldom needs more than a few


def sense(spec: mujoco.MjSpec, skeleton: Skeleton, feet: list[Leg]) -> None:
  """Give each foot a site around its shapes, and sensors of touch, velocity and angular velocity."""
  for foot in feet:
    kind, place, size = _zone(skeleton, foot)
    put_site(spec, foot.name, skeleton.body_name(foot.body), type=kind, pos=place, size=size)
    spec.add_sensor(name=foot.name, type=mjtSensor.mjSENS_TOUCH, objtype=mjtObj.mjOBJ_SITE, objname=foot.name)
    for word, sensor in (("velocity", mjtSensor.mjSENS_FRAMELINVEL), ("spin", mjtSensor.mjSENS_FRAMEANGVEL)):
      spec.add_sensor(name=f"{foot.name}_{word}", type=sensor, objtype=mjtObj.mjOBJ_SITE, objname=foot.name)


def put_site(spec: mujoco.MjSpec, name: str, body: str, **shape: Any) -> None:
  """Give a body a site, which replaces others of its name."""
  for site in list(spec.sites):
    if site.name == name:
      spec.delete(site)
  spec.body(body).add_site(name=name, group=4, **shape)


def make_round(spec: mujoco.MjSpec, skeleton: Skeleton, legs: list[Leg]) -> None:
  """Let a cylinder of its size collide in place of the meshes of a wheel: it rolls without bumps."""
  mj, data, lowest = skeleton.mj, skeleton.data, skeleton.lowest()
  for leg in legs:
    low = [geom for geom in leg.geoms if mj.geom_type[geom] == mjtGeom.mjGEOM_MESH]
    if leg.wheel < 0 or not low:
      continue
    name, frame = skeleton.body_name(leg.body), data.xmat[leg.body].reshape(3, 3)
    axle, axis = data.xanchor[leg.wheel], data.xaxis[leg.wheel]
    along = (corners(mj, data, low) - axle) @ axis
    ends = [frame.T @ (axle + end * axis - data.xpos[leg.body]) for end in (along.min(), along.max())]
    meshes = [geom for geom in spec.geoms if geom.meshname and carrier(geom.parent) == name]
    solid = [geom for geom in meshes if geom.contype or geom.conaffinity]
    cylinder = spec.body(name).add_geom(type=mjtGeom.mjGEOM_CYLINDER, mass=0, group=4)
    cylinder.fromto, cylinder.size = np.concatenate(ends), [axle[2] - lowest[leg.body], 0, 0]
    for field in ("friction", "condim", "solref", "solimp", "contype", "conaffinity"):
      setattr(cylinder, field, getattr(solid[0], field))
    for geom in solid:
      geom.contype = geom.conaffinity = 0


def hold(spec: mujoco.MjSpec, skeleton: Skeleton, joints: list[int]) -> None:
  """Replace joints by the fixed pose that they have now."""
  mj, data = skeleton.mj, skeleton.data
  for body in dict.fromkeys(int(mj.jnt_bodyid[joint]) for joint in joints):
    held = spec.body(skeleton.body_name(body))
    own = [joint for joint in range(mj.njnt) if mj.jnt_bodyid[joint] == body]
    if held.frame is not None or any(joint not in joints for joint in own):
      raise ValueError(
        f"env.joints: '{held.name}' lies in a <frame>, or has more joints: name its joints too"
      )
    parent = int(mj.body_parentid[body])
    rotation = data.xmat[parent].reshape(3, 3).T
    turn = (rotation @ data.xmat[body].reshape(3, 3)).ravel()
    for joint in list(held.joints):
      spec.delete(joint)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, turn)
    held.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    held.pos, held.quat = rotation @ (data.xpos[body] - data.xpos[parent]), quat


def finish(spec: mujoco.MjSpec, skeleton: Skeleton, stance: Floats, timestep: float) -> None:
  """Set the simulation's options, and add the keyframe `home`: the present pose, held by `stance` [nu]."""
  option = spec.option
  option.timestep, option.integrator = timestep, mjtIntegrator.mjINT_IMPLICITFAST
  option.cone, option.impratio, option.noslip_iterations = mjtCone.mjCONE_ELLIPTIC, 1.0, 0
  option.iterations, option.ls_iterations = max(option.iterations, ITERATIONS), max(option.ls_iterations, 50)
  option.disableflags, option.enableflags = 0, 0
  mj = spec.copy().compile()
  qpos = mj.qpos0.copy()
  for joint in range(mj.njnt):
    source = skeleton.mj.joint(mj.joint(joint).name).id
    positions(mj, qpos, joint)[:] = positions(skeleton.mj, skeleton.data.qpos, source)
  if skeleton.floats:
    qpos[:2] = 0.0
  spec.add_key(name="home", qpos=qpos, ctrl=stance)


def exclude_overlaps(spec: mujoco.MjSpec, skeleton: Skeleton, doubts: list[str]) -> None:
  """Let bodies that overlap in the present pose pass through each other."""
  mj, data = skeleton.mj, skeleton.data
  disabled, mj.opt.disableflags = mj.opt.disableflags, 0
  mujoco.mj_forward(mj, data)
  mj.opt.disableflags = disabled
  bodies = mj.geom_bodyid[data.contact.geom]  # [contacts, 2]
  found = np.unique(np.sort(bodies[(data.contact.dist < 0) & bodies.all(1)]), axis=0)
  pairs = [[*map(skeleton.body_name, pair)] for pair in found]
  for one, other in pairs:
    spec.add_exclude(bodyname1=one, bodyname2=other)
  if pairs:
    such = "{} pairs of links overlap at home and do not collide, such as '{}' and '{}'"
    doubts.append(such.format(len(pairs), *pairs[0]))
  for pair in list(spec.pairs):  # they collide in spite of an exclude
    if sorted(mj.geom(name).bodyid[0] for name in (pair.geomname1, pair.geomname2)) in found.tolist():
      spec.delete(pair)


def soles_at_home(mj: mujoco.MjModel, legs: list[Leg]) -> tuple[float, ...]:
  """Return the heights of the sites of the feet in the keyframe `home` [feet] [m]."""
  data = mujoco.MjData(mj)
  mujoco.mj_resetDataKeyframe(mj, data, 0)
  mujoco.mj_kinematics(mj, data)
  return tuple(float(data.site_xpos[mj.site(leg.name).id, 2]) for leg in legs)


def _zone(skeleton: Skeleton, foot: Foot) -> tuple[mjtGeom, Floats, Floats]:
  """Return type, place and size of a site that contains the shapes of a foot, in the frame of its body."""
  mj, data = skeleton.mj, skeleton.data
  frame, origin = data.xmat[foot.body].reshape(3, 3), data.xpos[foot.body]
  points = (corners(mj, data, foot.geoms) - origin) @ frame
  low, high = points.min(0), points.max(0)
  if len(foot.geoms) == 1 and mj.geom_type[foot.geoms[0]] == mjtGeom.mjGEOM_SPHERE:
    radius = GROWN * mj.geom_size[foot.geoms[0], 0]
    return mjtGeom.mjGEOM_SPHERE, (low + high) / 2, np.full(3, radius)
  return mjtGeom.mjGEOM_BOX, (low + high) / 2, GROWN * (high - low) / 2 + MARGIN


def corners(mj: mujoco.MjModel, data: mujoco.MjData, geoms: Sequence[int]) -> Floats:
  """Return the corners of the boxes around shapes [n, 3] [m]."""
  found, signs = [], np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
  for geom in geoms:
    middle, half = mj.geom_aabb[geom, :3], mj.geom_aabb[geom, 3:]
    found.append((middle + signs * half) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
  return np.concatenate(found)
