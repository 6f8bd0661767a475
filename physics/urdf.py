"""URDF files as they are found: meshes of packages, mimic joints, impossible inertias, a floating base."""

import math
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from mujoco import mjtEq, mjtGeom, mjtIntegrator, mjtJoint, mjtObj, mjtTrn

from physics.mesh_files import Packages, find_mesh, read_mesh
from physics.model.model import Floats
from physics.support import one_line
from physics.urdf_text import MACROS, Element, end_of, read_robot

ENDINGS = (".urdf", MACROS)  # of files that are read here
WORLD = "world"  # the link that stands still
SCALAR = (mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE)
SLACK = 1e-6  # of the second moment of a flat body, relative to its largest: a rounded zero
MASSLESS = 1e-6  # [kg] a link of less is only a frame
THINNEST = 1e-3  # [m] radius of gyration that an impossible inertia gets at least
LEAST_MASS, THICKEST = 1e-3, 0.03  # [kg], [m] radius of gyration, of what moves without mass
STALL = 4.0  # torque at rest over effort, of a servo with a limit of speed
POSITION = 1  # MuJoCo's mjtCtrlInput: what the controller of a DC motor follows
ENDLESS = ("inf", "infinity", "+inf")  # limits of speed
FAR = 100.0  # [m] beyond which no distance is measured
FASTEST = 1e9  # [rad/s, m/s] above which a limit of speed is none
OVERLAP = 1e-4  # [m] of links that a warning names


class Mimic(NamedTuple):
  """The rule of a mimic joint: it is at `offset` plus `multiplier` times the position of `leader`."""

  leader: str
  offset: float  # [rad, m]
  multiplier: float
  leader_exists: bool


def read_urdf(
  path: str | os.PathLike[str],
  *,
  floating: bool = False,
  self_collision: bool = True,
  gains: tuple[float, float] | None = None,
  home: Mapping[str, float] | None = None,
  packages: Packages | None = None,
) -> mujoco.MjSpec:
  """Return a URDF robot as an MjSpec, to be edited or given to `load_model`.

  Args:
    path: the file.
    floating: whether the base moves freely; otherwise it is fixed to the world.
    self_collision: whether links collide with each other, unless one carries the other. Other objects collide
      with the robot in either case.
    gains: stiffness [N m/rad, N/m] and damping [N m s/rad, N s/m] of a position servo at every joint that
      does not mimic another, within the joint's limits of position, effort and velocity; None: there are no
      actuators.
    home: positions [rad, m] of joints by name in the keyframe `home`. Others are zero or at the nearer limit;
      the lowest point of a floating robot is at height zero; servos hold the pose.
    packages: folders of packages by name, for meshes by `package://` or `model://` and for xacro's `$(find)`.
      A package is also found above the file and beside the folders above it, by its folder or its
      package.xml, and in the folders of the environment variable ROS_PACKAGE_PATH.

  Shapes of collision are read, visual ones are not. Mimic joints become equality constraints. Inertias that
  no rigid body has are replaced by the nearest possible ones, with a warning. Raises ValueError for what no
  robot can have, and FileNotFoundError for a mesh that is not found.
  """
  path = Path(path)
  try:
    _check(gains, home, packages)
    robot = read_robot(path, packages or {})
    _mend_inertias(robot, path)
    if floating:
      _float(robot)
    _give_mass(robot, path)
    speeds = _take_speeds(robot, path)
    mimics = dict(_take_mimics(robot))
    assets = dict(_embed_meshes(robot, path, packages or {}))
    spec = mujoco.MjSpec.from_string(ET.tostring(robot, encoding="unicode"), assets=assets)
    _add_mimics(spec, mimics, path)
    if not self_collision:
      for geom in spec.geoms:
        geom.contype = 0
    _add_servos(spec, gains, speeds, mimics, path)
    _add_home(spec, path, dict(home or {}), mimics)
  except (ValueError, RecursionError) as error:
    raise ValueError(f"{path}: {one_line(error)}") from error
  return spec


def _check(gains: Any, home: Any, packages: Any) -> None:
  """Raise ValueError for arguments that are of another kind."""
  is_pair = isinstance(gains, list | tuple) and len(gains) == 2
  if gains is not None and not (is_pair and all(_is_number(gain) and gain >= 0 for gain in gains)):
    raise ValueError(f"gains={gains!r}: write stiffness and damping, such as (40.0, 1.0)")
  if home is not None and not (isinstance(home, Mapping) and all(map(_is_number, home.values()))):
    raise ValueError(f"home={home!r}: write positions by joint, such as {{'knee': -1.2}}")
  if packages is not None and not isinstance(packages, Mapping):
    raise ValueError(f"packages={packages!r}: write folders by package")


def _is_number(value: Any) -> bool:
  try:
    return math.isfinite(value)
  except TypeError:
    return False


def _mend_inertias(robot: Element, path: Path) -> None:
  """Leave one possible inertia per link; links without mass have none."""
  for link in robot.iter("link"):
    name, inertials = link.get("name"), link.findall("inertial")
    for repeated in inertials[1:]:
      link.remove(repeated)
      _warn(f"{path}: link {name!r} has {len(inertials)} inertials: the first one counts")
    for inertial in inertials[:1]:
      mass, inertia = inertial.find("mass"), inertial.find("inertia")
      if mass is None or inertia is None:
        raise ValueError(f"link {name!r}: inertial lacks mass or inertia: write both, or neither")
      kilograms = _number(mass, "value", f"link {name!r}: mass")
      if kilograms < 0:
        raise ValueError(f"link {name!r}: mass value={kilograms:g} is negative")
      if kilograms < MASSLESS:
        link.remove(inertial)
      elif _mend(inertia, kilograms, f"link {name!r}: inertia"):
        _warn(f"{path}: link {name!r}: no rigid body has its inertia: the nearest possible one replaces it")


def _number(element: Element, attribute: str, owner: str, default: float | None = None) -> float:
  """Return an attribute as a number; ValueError names its owner."""
  text = element.get(attribute, default if default is None else str(default))
  if text is None:
    raise ValueError(f"{owner} {attribute} is missing")
  try:
    number = float(text)
  except ValueError:
    number = math.nan
  if not math.isfinite(number):
    raise ValueError(f"{owner} {attribute}={text!r} is not a number")
  return number


def _give_mass(robot: Element, path: Path) -> None:
  """Give mass to links that move without any, alone or with links fixed to them."""
  joints = list(robot.iter("joint"))
  carrier = {
    end_of(joint, "child"): end_of(joint, "parent") for joint in joints if joint.get("type") == "fixed"
  }
  moving = {end_of(joint, "child") for joint in joints} - {*carrier}
  heavy = set()
  for link in robot.iter("link"):
    if link.find("inertial") is not None or link.find("collision") is not None:
      name = link.get("name", "")
      while name in carrier:
        name = carrier[name]
      heavy.add(name)
  for link in robot.iter("link"):
    if link.get("name") in moving - heavy:
      _warn(f"{path}: link {link.get('name')!r} moves without mass: it gets {LEAST_MASS:g} kg")
      inertial = ET.SubElement(link, "inertial")
      ET.SubElement(inertial, "mass", value=f"{LEAST_MASS:g}")
      moment = f"{LEAST_MASS * THICKEST**2:g}"
      ET.SubElement(inertial, "inertia", ixx=moment, iyy=moment, izz=moment, ixy="0", ixz="0", iyz="0")


def _warn(message: str, level: int = 4) -> None:
  warnings.warn(message, stacklevel=level)


def _mend(inertia: Element, mass: float, owner: str) -> bool:
  """Replace an impossible inertia; return whether it was impossible by more than rounding.

  The inertia I of a body has the second moments S = tr(I)/2 - I of its mass, none of them negative
  (Wensing et al., "Linear Matrix Inequalities for Physically-Consistent Inertial Parameter Identification",
  2018). The nearest possible one has the same axes.
  """
  names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
  upper = dict(zip(names, zip(*np.triu_indices(3), strict=True), strict=True))
  tensor = np.zeros((3, 3))
  for name, (i, j) in upper.items():
    tensor[i, j] = tensor[j, i] = _number(inertia, name, owner, default=0.0)
  moments, axes = np.linalg.eigh(np.trace(tensor) / 2 * np.eye(3) - tensor)
  if moments.min() > 0:
    return False
  possible = moments.clip(min=mass * THINNEST**2)
  tensor = possible.sum() * np.eye(3) - (axes * possible) @ axes.T
  for name, (i, j) in upper.items():
    inertia.set(name, repr(float(tensor[i, j])))
  return bool(moments.min() < -SLACK * moments.max())


def _float(robot: Element) -> None:
  """Make the base move freely: it hangs on the world by a floating joint."""
  children = {end_of(joint, "child") for joint in robot.iter("joint")}
  roots = [name for link in robot.iter("link") if (name := link.get("name", "")) not in children]
  if len(roots) != 1:
    raise ValueError(f"{len(roots)} links have no parent: a robot has one base")
  if roots == [WORLD]:
    held = [joint for joint in robot.iter("joint") if end_of(joint, "parent") == WORLD]
    if [joint.get("type") for joint in held] != ["fixed"]:
      raise ValueError(f"{len(held)} joints hold the robot in the world: floating needs one fixed joint")
    held[0].set("type", "floating")
    return
  joint = ET.SubElement(robot, "joint", name="floating_base", type="floating")
  ET.SubElement(robot, "link", name=WORLD)
  ET.SubElement(joint, "parent", link=WORLD)
  ET.SubElement(joint, "child", link=roots[0])


def _embed_meshes(robot: Element, path: Path, packages: Packages) -> Iterator[tuple[str, bytes]]:
  """Yield name and content of every mesh file; meshes of the same name in two folders stay apart."""
  files: dict[Path, str] = {}
  for link in robot.iter("link"):
    for mesh in link.iter("mesh"):
      try:
        found = find_mesh(mesh.get("filename", ""), path.parent, packages)
      except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: link {link.get('name')!r}: {error}") from error
      if found not in files:
        content, ending = read_mesh(found)
        files[found] = f"{found.stem}_{len(files)}{ending}"
        yield files[found], content
      mesh.set("filename", files[found])


def _take_speeds(robot: Element, path: Path) -> dict[str, float]:
  """Return limits of speed [rad/s, m/s] by joint; warn of position limits in the wrong order."""
  speeds = dict[str, float]()
  for joint in robot.iter("joint"):
    for limit in joint.findall("limit"):
      name, owner = joint.get("name", ""), f"joint {joint.get('name')!r}: limit"
      low, high = (_number(limit, end, owner, 0.0) for end in ("lower", "upper"))
      if low > high:
        _warn(f"{path}: joint {name!r}: lower={low:g} is above upper={high:g}: it has no limits")
      if limit.get("velocity", "inf").lower() not in ENDLESS:
        speed = _number(limit, "velocity", owner)
        if speed < 0:
          raise ValueError(f"{owner} velocity={speed:g} is negative: write a positive one, or none")
        speeds |= {name: speed} if speed < FASTEST else {}
  return speeds


def _take_mimics(robot: Element) -> Iterator[tuple[str, Mimic]]:
  """Remove all mimics from the robot; yield those of moving joints by name."""
  for joint in robot.iter("joint"):
    for element in joint.findall("mimic"):
      joint.remove(element)
      name, leader = joint.get("name", ""), element.get("joint")
      if leader is None or leader == name:
        raise ValueError(f"joint {name!r}: mimic joint={leader!r}: name another joint")
      offset, multiplier = (
        _number(element, attribute, f"joint {name!r}: mimic", default)
        for attribute, default in (("offset", 0.0), ("multiplier", 1.0))
      )
      if joint.get("type") != "fixed":
        yield (
          name,
          Mimic(leader, offset, multiplier, any(j.get("name") == leader for j in robot.iter("joint"))),
        )


def _add_mimics(spec: mujoco.MjSpec, mimics: Mapping[str, Mimic], path: Path) -> None:
  """Make joints follow others, each at its offset plus a multiple of the other's position.

  Where the other does not move, the joint stays at the offset.
  """
  moving = {joint.name for joint in spec.joints}
  for name, mimic in mimics.items():
    if not mimic.leader_exists:
      _warn(f"{path}: joint {name!r} mimics {mimic.leader!r}, which is no joint: it stays at its offset")
    data = np.zeros(mujoco.mjNEQDATA)
    data[:2] = mimic.offset, mimic.multiplier
    spec.add_equality(
      type=mjtEq.mjEQ_JOINT,
      objtype=mjtObj.mjOBJ_JOINT,
      name1=name,
      name2=mimic.leader if mimic.leader in moving else "",
      data=data,
    )


def _add_servos(
  spec: mujoco.MjSpec,
  gains: tuple[float, float] | None,
  speeds: Mapping[str, float],
  mimics: Mapping[str, Mimic],
  path: Path,
) -> None:
  """Add position servos if there are gains; warn of limits of speed that none keeps."""
  unkept = {}
  for joint in spec.joints:
    if joint.type in SCALAR and joint.name not in mimics:
      speed = speeds.get(joint.name, 0.0)
      if not (gains and _add_servo(spec, joint, gains, speed)) and speed > 0.0:
        unkept[joint.name] = speed
  if unkept:
    name = min(unkept, key=unkept.__getitem__)
    which = f"limits of speed of {len(unkept)} joints, such as {unkept[name]:g} of {name!r},"
    _warn(f"{path}: {which} are not kept: servos of read_urdf(gains=...) keep them if there is an effort")


def _add_servo(spec: mujoco.MjSpec, joint: mujoco.MjsJoint, gains: tuple[float, float], speed: float) -> bool:
  """Add a position servo; return whether it keeps a limit of `speed` [rad/s, m/s].

  It is a DC motor with a controller then, with the effort up to three quarters of the speed, and none at it.
  """
  servo = spec.add_actuator(name=joint.name, trntype=mjtTrn.mjTRN_JOINT, target=joint.name)
  limited, effort = joint.range[0] < joint.range[1], joint.actfrcrange[1]
  if effort <= 0.0 or speed <= 0.0:
    servo.set_to_position(kp=gains[0], kv=gains[1], inheritrange=1.0 if limited else 0.0)
    return False
  controller = (gains[0], 0.0, gains[1], 0.0, 0.0, speed)
  servo.set_to_dcmotor((1.0, 1.0), speed / (STALL * effort), controller=controller, ctrlspec=POSITION)
  spec.option.integrator = mjtIntegrator.mjINT_IMPLICITFAST  # at the speed the torque falls steeply
  if limited:
    servo.ctrlrange = joint.range
  return True


def _add_home(spec: mujoco.MjSpec, path: Path, home: dict[str, float], mimics: Mapping[str, Mimic]) -> None:
  """Add the keyframe `home`."""
  trial = spec.copy()
  ground = trial.worldbody.add_geom(type=mjtGeom.mjGEOM_PLANE, size=[1, 1, 1], name="ground of read_urdf")
  mj = trial.compile()
  scalars = [joint for joint in range(mj.njnt) if mjtJoint(mj.jnt_type[joint]) in SCALAR]
  for name in home:
    if mujoco.mj_name2id(mj, mjtObj.mjOBJ_JOINT, name) not in scalars:
      raise ValueError(f"home: no joint {name!r} of one degree of freedom")
    if name in mimics:
      raise ValueError(f"home: joint {name!r} follows {mimics[name].leader!r}: give the position of that")
  data = mujoco.MjData(mj)
  for joint in scalars:
    name = mj.joint(joint).name
    asked = home.get(name, 0.0)
    low, high = mj.jnt_range[joint] if mj.jnt_limited[joint] else (-np.inf, np.inf)
    position = data.qpos[mj.jnt_qposadr[joint]] = np.clip(asked, low, high)
    if name in home and position != asked:
      _warn(f"{path}: home: {name!r} at {asked:g} is beyond its limit: it is at {position:g}")
  for _ in mimics:  # a joint may follow one that follows another
    _follow(mj, data.qpos)
  _stand(mj, data, mj.geom(ground.name).id)
  _warn_of_overlaps(mj, data, path, mj.geom(ground.name).id)
  at = mj.jnt_qposadr[mj.actuator_trnid[:, 0]]
  spec.add_key(name="home", qpos=data.qpos, ctrl=data.qpos[at])


def _follow(mj: mujoco.MjModel, qpos: Floats) -> None:
  """Put mimic joints where the joints that they follow lead them."""
  for follower, leader, data in zip(mj.eq_obj1id, mj.eq_obj2id, mj.eq_data, strict=True):
    leads = qpos[mj.jnt_qposadr[leader]] if leader >= 0 else 0.0
    qpos[mj.jnt_qposadr[follower]] = data[0] + data[1] * leads


def _stand(mj: mujoco.MjModel, data: mujoco.MjData, ground: int) -> None:
  """Lift or lower a floating base until its lowest point is at height zero."""
  mujoco.mj_forward(mj, data)
  for joint in np.flatnonzero(mj.jnt_type == mjtJoint.mjJNT_FREE):
    geoms = [geom for geom in range(mj.ngeom) if mj.geom_bodyid[geom]]
    heights = [mujoco.mj_geomDistance(mj, data, ground, geom, FAR, None) for geom in geoms]
    data.qpos[mj.jnt_qposadr[joint] + 2] -= min(heights, default=0.0)


def _warn_of_overlaps(mj: mujoco.MjModel, data: mujoco.MjData, path: Path, ground: int) -> None:
  """Warn of links that overlap in the home pose, the deepest ones by name.

  MuJoCo exempts from collision what a body carries, but not what the world does. A fixed base is the world's.
  """
  deepest: dict[tuple[int, ...], float] = {}
  for contact in data.contact:
    if ground not in contact.geom and contact.dist < -OVERLAP:
      pair = tuple(sorted(mj.body_weldid[mj.geom_bodyid[contact.geom]].tolist()))
      deepest[pair] = max(deepest.get(pair, 0.0), -contact.dist)
  if not deepest:
    return
  depth, pair = max((depth, pair) for pair, depth in deepest.items())
  names = " and ".join(repr(mj.body(body).name) if body else "the base" for body in pair)
  more = f", the deepest of {len(deepest)} pairs," if len(deepest) > 1 else ""
  free = "floating=True, " if any(0 in each for each in deepest) else ""
  remedy = f"take {free}self_collision=False, or add_exclude of the returned MjSpec"
  _warn(f"{path}: at home {names} overlap by {1e3 * depth:.1f} mm{more} and are pushed apart: {remedy}", 5)
