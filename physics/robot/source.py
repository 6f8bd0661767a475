"""Reader of robot files, MJCF or URDF, reduced to the parts that walking or reaching needs."""

import functools
import operator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtJoint, mjtTrn

from physics.model.spelling import nearest_word
from physics.model_size import check_size
from physics.urdf import ENDINGS, read_urdf

FLOOR = "floor"
SCALAR = (int(mjtJoint.mjJNT_HINGE), int(mjtJoint.mjJNT_SLIDE))  # joints of one degree of freedom
ON_JOINT = (int(mjtTrn.mjTRN_JOINT), int(mjtTrn.mjTRN_JOINTINPARENT))
MOST_VERTICES = 64  # of a mesh's hull: shapes of feet and shells need no more


def is_urdf(path: str) -> bool:
  """Return whether a file is URDF, by its name."""
  return Path(path).suffix.lower() in ENDINGS


def open_robot(path: str, doubts: list[str], *, floating: bool = False) -> mujoco.MjSpec:
  """Return a robot file in which every body and joint has a name; the base of a URDF floats or is fixed.

  A fixed base stays a body, as do frames that are fixed to the links of an arm, such as its tool's.
  Visual shapes without their mesh file are left out. Raises FileNotFoundError and ValueError.
  """
  file = Path(path)
  if file.is_dir():
    inside = _nearest_file(file / file.name)
    raise FileNotFoundError(f"env.robot={path} is a folder: name the robot's file in it{inside}")
  if not file.is_file():
    place = file.absolute().parent
    raise FileNotFoundError(f"env.robot={path}: there is no such file in {place}{_nearest_file(file)}")
  if is_urdf(path):
    spec = read_urdf(file, floating=floating)
    spec.compiler.fusestatic = floating
    spec.compiler.discardvisual = False  # shapes that are added for a picture stay
    _take_invented_mass(spec)
    _delete(spec, spec.keys)
  else:
    spec = _read(file)
    _leave_out_missing(spec, doubts)
  for kind, elements in (("body", spec.bodies), ("joint", spec.joints)):
    for index, element in enumerate(elements):
      if not element.name:
        element.name = f"{kind} {index}" if kind == "body" else f"{element.parent.name} joint {index}"
  return spec


def compiled(spec: mujoco.MjSpec, path: str) -> mujoco.MjModel:
  """Return the compiled model of a copy; raise ValueError in one line."""
  try:
    return spec.copy().compile()
  except ValueError as error:
    raise ValueError(f"{path}: {', '.join(str(error).split(chr(10)))}") from error


def root_of(mj: mujoco.MjModel, path: str) -> int:
  """Return the body of the free joint that carries the most joints; raise ValueError if there is none."""
  free = [int(mj.jnt_bodyid[j]) for j in np.flatnonzero(mj.jnt_type == mjtJoint.mjJNT_FREE)]
  scalar = mj.jnt_bodyid[np.isin(mj.jnt_type, SCALAR)]
  if not free:
    base = mj.body(int(scalar[0])).name if len(scalar) else "its trunk"
    raise ValueError(
      f"{path}: its base is fixed, so it cannot walk: add <freejoint/> to the trunk, which may be '{base}'; "
      "an arm reaches: task=reach"
    )
  root = max(free, key=lambda body: int((mj.body_rootid[scalar] == mj.body_rootid[body]).sum()))
  if not (mj.body_rootid[scalar] == root).any():
    raise ValueError(f"{path}: '{mj.body(root).name}' floats, but no hinge or slide joint moves its parts")
  return root


def base_of(mj: mujoco.MjModel, path: str, site: str | None, doubts: list[str]) -> int:
  """Return the fixed body that carries the most joints, or the site or body of that name.

  Raises ValueError if no such body carries a joint.
  """
  floating = mj.body_rootid[mj.jnt_bodyid[mj.jnt_type == mjtJoint.mjJNT_FREE]]
  roots = mj.body_rootid[mj.jnt_bodyid[np.isin(mj.jnt_type, SCALAR)]]
  fixed = roots[~np.isin(roots, floating)]
  if not len(roots):
    raise ValueError(f"{path}: no hinge or slide joint moves a part of it, so it cannot reach")
  if not len(fixed):
    raise ValueError(
      f"{path}: its base floats, so it is no arm: remove the <freejoint/>, or let it walk by task=walk"
    )
  named = [mj.site(s).bodyid[0] for s in range(mj.nsite) if mj.site(s).name == site]
  named += [body for body in range(mj.nbody) if mj.body(body).name == site]
  own = [int(root) for root in mj.body_rootid[named] if root in fixed]
  base = own[0] if own else int(np.bincount(fixed).argmax())
  hinged = mj.body_rootid[mj.jnt_bodyid[mj.jnt_type == mjtJoint.mjJNT_HINGE]].tolist()
  others = [mj.body(root).name for root in sorted({*fixed.tolist()} - {base}) if hinged.count(root) > 2]
  if others:
    doubts.append(f"another arm is left out, on '{others[0]}': env.site=<its tip> reaches with it")
  return base


def keep_robot(spec: mujoco.MjSpec, root: str, doubts: list[str]) -> bool:
  """Leave the robot on a level floor; no other bodies, no sensors, no keyframes.

  Returns whether the floor is the file's; otherwise it is a new one.
  """
  others = [body for body in spec.worldbody.bodies if body.name != root]
  planes = [geom for geom in spec.worldbody.geoms if is_level(geom)]
  shapes = [geom for geom in spec.worldbody.geoms if geom not in planes[:1]]
  if others or shapes:
    doubts.append(f"the scene's other {len(others)} bodies and {len(shapes)} shapes are left out")
  for elements in (spec.sensors, spec.keys, shapes, others):  # a body takes along what refers to it
    _delete(spec, elements)
  left = {"", *(body.name for body in spec.bodies)}
  _delete(spec, [one for one in (*spec.lights, *spec.cameras) if one.targetbody not in left])
  floor = planes[0] if planes else spec.worldbody.add_geom(type=mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
  floor.name = FLOOR
  return bool(planes)


def set_collisions(spec: mujoco.MjSpec, *, self_collision: bool) -> None:
  """Make the robot's colliding shapes collide with the floor, and with each other if asked."""
  paired = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
  floor = spec.geom(FLOOR)
  shapes = [geom for geom in spec.geoms if geom.name != FLOOR]
  solid = [geom for geom in shapes if geom.contype or geom.conaffinity or geom.name in paired]
  own = {geom.name for geom in shapes} if self_collision else set()
  _delete(spec, [pair for pair in spec.pairs if not {pair.geomname1, pair.geomname2} <= own])
  if not self_collision:
    _delete(spec, spec.excludes)
  for geom in solid:
    if not self_collision or not (geom.contype or geom.conaffinity):
      geom.contype, geom.conaffinity = 0, 1
  bits = functools.reduce(operator.or_, (geom.contype | geom.conaffinity for geom in solid), 1)
  floor.contype, floor.conaffinity = bits, bits if self_collision else 0
  for geom in solid:
    geom.condim = min(geom.condim, 3)
  for mesh in spec.meshes:
    mesh.maxhullvert = MOST_VERTICES if mesh.maxhullvert < 0 else min(mesh.maxhullvert, MOST_VERTICES)


def leave_out_equalities(spec: mujoco.MjSpec, joints: set[str], kept: frozenset[int] = frozenset()) -> None:
  """Leave out equality constraints except those `kept`, by index, and those between joints of these names.

  The others act on held joints.
  """
  for index, equality in enumerate(list(spec.equalities)):
    coupled = {equality.name1, equality.name2} - {""}
    if index not in kept and (equality.type != mujoco.mjtEq.mjEQ_JOINT or not coupled <= joints):
      spec.delete(equality)


def driven_joints(mj: mujoco.MjModel, root: int, doubts: list[str]) -> list[int]:
  """Return the joints of the robot with an actuator, in the order of these; without any, all that can move.

  Joints that follow others by an equality constraint are not moved.
  """
  carried = mj.body_rootid[mj.jnt_bodyid] == mj.body_rootid[root]
  of_robot = np.flatnonzero(np.isin(mj.jnt_type, SCALAR) & carried).tolist()
  on_joints = np.isin(mj.actuator_trntype, ON_JOINT)
  driven = [int(joint) for joint in mj.actuator_trnid[on_joints, 0] if int(joint) in of_robot]
  if not on_joints.all():
    doubts.append(f"{(~on_joints).sum()} actuators drive tendons, sites or bodies and are left out")
  if driven:
    return list(dict.fromkeys(driven))
  followers = {*mj.eq_obj1id[mj.eq_type == mujoco.mjtEq.mjEQ_JOINT].tolist()}
  return [joint for joint in of_robot if joint not in followers]


def pulled_joints(mj: mujoco.MjModel) -> dict[int, list[tuple[int, float]]]:
  """Return the joints that actuators drive through fixed tendons, each with these and its coefficients."""
  found: dict[int, list[tuple[int, float]]] = {}
  for actuator in np.flatnonzero(mj.actuator_trntype == mjtTrn.mjTRN_TENDON).tolist():
    tendon = mj.actuator_trnid[actuator, 0]
    for wrap in range(mj.tendon_adr[tendon], mj.tendon_adr[tendon] + mj.tendon_num[tendon]):
      if mj.wrap_type[wrap] == mujoco.mjtWrap.mjWRAP_JOINT:
        found.setdefault(int(mj.wrap_objid[wrap]), []).append((actuator, float(mj.wrap_prm[wrap])))
  return found


def _read(file: Path) -> mujoco.MjSpec:
  try:
    check_size(file.read_text(errors="ignore"), file.parent)
    return mujoco.MjSpec.from_file(str(file))
  except (ValueError, RecursionError) as error:
    raise ValueError(
      f"{file}: {', '.join(str(error).split(chr(10)))}: this is no MJCF or URDF file"
    ) from error


def _take_invented_mass(spec: mujoco.MjSpec) -> None:
  """Take the mass that MuJoCo gives to shapes of links without inertia, if links fixed to them have one."""
  carriers = {body.name: carrier(body) for body in spec.bodies}
  heavy = {carriers[body.name] for body in spec.bodies if body.explicitinertial}
  for body in spec.bodies:
    if not body.explicitinertial and carriers[body.name] in heavy:
      for geom in body.geoms:
        geom.density = 0.0


def carrier(body: Any) -> str:
  """Return the link that moves a link which is fixed to it, or the link itself."""
  while not body.joints and body.parent is not None:
    body = body.parent
  return str(body.name)


def _nearest_file(file: Path) -> str:
  """Return the end of a message: the file of a similar name in the same folder."""
  folder = file.parent
  others = [path.name for path in folder.glob("*") if path.suffix.lower() in (".xml", ".urdf")]
  return f"; nearest: '{folder / nearest_word(file.name, others)}'" if others else ""


def is_level(geom: Any) -> bool:
  """Return whether a geom of the world is a plane at height zero."""
  upright = np.allclose(geom.quat, [1, 0, 0, 0]) and np.allclose(geom.pos[2], 0)
  return bool(geom.type == mjtGeom.mjGEOM_PLANE and upright)


def _delete(spec: mujoco.MjSpec, elements: Any) -> None:
  for element in list(elements):
    spec.delete(element)


def _leave_out_missing(spec: mujoco.MjSpec, doubts: list[str]) -> None:
  """Leave out meshes without their files, where only the appearance depends on them."""
  folder = Path(spec.modelfiledir) / spec.meshdir
  missing = {mesh.name or Path(mesh.file).stem: mesh for mesh in spec.meshes if _lacks(folder, mesh.file)}
  shapes = [geom for geom in spec.geoms if geom.meshname in missing]
  kept = {g.meshname for g in shapes if g.contype or g.conaffinity or not g.parent.explicitinertial}
  seen = [geom for geom in shapes if geom.meshname not in kept]
  if seen:
    doubts.append(f"{len(seen)} shapes are not drawn: mesh files are missing, such as '{seen[0].meshname}'")
  _delete(spec, [*seen, *(mesh for name, mesh in missing.items() if name not in kept)])


def _lacks(folder: Path, file: str) -> bool:
  return bool(file) and not (folder / file).is_file() and not Path(file).is_file()
