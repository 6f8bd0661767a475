"""URDF files as they are found: meshes of packages, mimic joints, impossible inertias, a floating base."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from mujoco import mjtEq, mjtGeom, mjtJoint, mjtObj, mjtTrn

from physics.model.model import Floats

Element: TypeAlias = ET.Element
Packages: TypeAlias = Mapping[str, str | os.PathLike[str]]

MUJOCO_MESHES = (".stl", ".obj", ".msh")  # that MuJoCo reads itself
PARTS = {"robot": ("link", "joint", "mujoco"), "link": ("inertial", "collision")}  # that move or collide
WORLD = "world"  # the link that stands still
SCALAR = (mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE)
SLACK = 1e-6  # of the second moment of a flat body, relative to its largest: a rounded zero
MASSLESS = 1e-6  # [kg] a link of less is only a frame
THINNEST = 1e-3  # [m] radius of gyration that an impossible inertia gets at least
LEAST_MASS, THICKEST = 1e-3, 0.03  # [kg], [m] radius of gyration, of what moves without mass
FAR = 100.0  # [m] beyond which no distance is measured
OVERLAP = 1e-4  # [m] of links that is told


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
      does not mimic another, within the joint's limits and effort; None: there are no actuators.
    home: positions [rad, m] of joints by name in the keyframe `home`. Others are zero or at the nearer limit;
      the lowest point of a floating robot is at height zero; servos hold the pose.
    packages: folders of ROS packages by name, for meshes by `package://`. A package is also found beside the
      folders above the file, and in those of the environment variable ROS_PACKAGE_PATH.

  Shapes of collision are read, visual ones are not. Mimic joints become equality constraints. Inertias that
  no rigid body has are replaced by the nearest possible ones, with a warning. Raises ValueError for what no
  robot can have, and FileNotFoundError for a mesh that is not found.
  """
  path = Path(path)
  robot = _parse(path)
  _mend_inertias(robot, path)
  if floating:
    _float(robot, path)
  _give_mass(robot, path)
  assets = dict(_embed_meshes(robot, path, packages or {}))
  try:
    spec = mujoco.MjSpec.from_string(ET.tostring(robot, encoding="unicode"), assets=assets)
  except ValueError as error:
    raise ValueError(f"{path}: {error}") from error
  mimics = {joint.get("name"): mimic for joint in robot.iter("joint") for mimic in joint.iter("mimic")}
  followers = {joint.name: mimics[joint.name] for joint in spec.joints if joint.name in mimics}
  for name, mimic in followers.items():
    _add_mimic(spec, name, mimic)
  if not self_collision:
    for geom in spec.geoms:
      geom.contype = 0
  if gains is not None:
    for joint in spec.joints:
      if joint.type in SCALAR and joint.name not in followers:
        _add_servo(spec, joint, *gains)
  _add_home(spec, path, dict(home or {}))
  return spec


def _parse(path: Path) -> Element:
  """Return the robot of a file, reduced to what moves and collides."""
  if not path.is_file():
    raise FileNotFoundError(f"no model file '{path}' in {Path.cwd()}: write Path(__file__).parent / '<file>'")
  try:
    robot = ET.parse(path).getroot()
  except ET.ParseError as error:
    raise ValueError(f"{path}: {error}: this is not XML") from error
  if robot.tag != "robot":
    raise ValueError(f"{path}: the first element is <{robot.tag}>: a URDF begins with <robot>")
  for tag, kept in PARTS.items():
    for element in robot.iter(tag):
      element[:] = [child for child in element if child.tag in kept]
  for compiler in robot.iter("compiler"):
    compiler.attrib.pop("meshdir", None)
  return robot


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
        raise ValueError(f"{path}: link {name!r}: inertial lacks mass or inertia: write both, or neither")
      if float(mass.get("value", 0)) < MASSLESS:
        link.remove(inertial)
      elif _mend(inertia, float(mass.get("value", 0))):
        _warn(f"{path}: link {name!r}: no rigid body has its inertia: the nearest possible one replaces it")


def _give_mass(robot: Element, path: Path) -> None:
  """Give mass to links that move without any, alone or with what is fixed to them."""
  joints = list(robot.iter("joint"))
  carrier = {_end(joint, "child"): _end(joint, "parent") for joint in joints if joint.get("type") == "fixed"}
  moving = {_end(joint, "child") for joint in joints} - {*carrier}
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


def _end(joint: Element, kind: str) -> str:
  """Return the name of the link at an end of a joint, which is its `parent` or its `child`."""
  end = joint.find(kind)
  return "" if end is None else end.get("link", "")


def _warn(message: str, level: int = 4) -> None:
  warnings.warn(message, stacklevel=level)


def _mend(inertia: Element, mass: float) -> bool:
  """Replace an impossible inertia; return whether it was impossible by more than rounding.

  The inertia I of a body has the second moments S = tr(I)/2 - I of its mass, none of which is negative
  (Wensing et al., "Linear Matrix Inequalities for Physically-Consistent Inertial Parameter Identification",
  2018). The nearest possible one has the same axes.
  """
  names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
  upper = dict(zip(names, zip(*np.triu_indices(3), strict=True), strict=True))
  tensor = np.zeros((3, 3))
  for name, (i, j) in upper.items():
    tensor[i, j] = tensor[j, i] = float(inertia.get(name, 0))
  moments, axes = np.linalg.eigh(np.trace(tensor) / 2 * np.eye(3) - tensor)
  if moments.min() > 0:
    return False
  possible = moments.clip(min=mass * THINNEST**2)
  tensor = possible.sum() * np.eye(3) - (axes * possible) @ axes.T
  for name, (i, j) in upper.items():
    inertia.set(name, repr(float(tensor[i, j])))
  return bool(moments.min() < -SLACK * moments.max())


def _float(robot: Element, path: Path) -> None:
  """Let the base move freely: it hangs on the world by a floating joint."""
  children = {_end(joint, "child") for joint in robot.iter("joint")}
  roots = [name for link in robot.iter("link") if (name := link.get("name", "")) not in children]
  if robot.find("link") is None:
    raise ValueError(f"{path}: it has no links, so it is no robot")
  if len(roots) != 1:
    raise ValueError(f"{path}: {len(roots)} links have no parent: a robot has one base")
  if roots == [WORLD]:
    held = [joint for joint in robot.iter("joint") if _end(joint, "parent") == WORLD]
    if [joint.get("type") for joint in held] != ["fixed"]:
      raise ValueError(
        f"{path}: {len(held)} joints hold the robot in the world: floating needs one fixed joint"
      )
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
      asked = mesh.get("filename", "")
      found = next((file for file in _places(asked, path.parent, packages) if file.is_file()), None)
      if found is None:
        hint = "packages={'<its package>': '<folder>'}" if asked.startswith("package:") else "its file"
        raise FileNotFoundError(f"{path}: link {link.get('name')!r}: no mesh '{asked}': give {hint}")
      if found not in files:
        content, ending = _read_mesh(found)
        files[found] = f"{found.stem}_{len(files)}{ending}"
        yield files[found], content
      mesh.set("filename", files[found])


def _places(name: str, folder: Path, packages: Packages) -> Iterator[Path]:
  """Yield where a mesh file may be: in its package, or relative to the URDF's folder."""
  scheme, _, rest = name.rpartition("://")
  if scheme != "package":
    yield folder / (rest if scheme == "file" else name)
    return
  package, _, rest = rest.partition("/")
  if package in packages:
    yield Path(packages[package]) / rest
  for above in (folder / "_").resolve().parents:
    yield (above if above.name == package else above / package) / rest
  for root in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
    yield Path(root) / package / rest


def _read_mesh(file: Path) -> tuple[bytes, str]:
  """Return the content of a mesh file and its ending; formats that MuJoCo does not read become binary STL."""
  content, ending = file.read_bytes(), file.suffix.lower()
  if ending in MUJOCO_MESHES and not (ending == ".stl" and _is_text(content)):
    return content, ending
  try:
    import trimesh  # noqa: PLC0415 (most files do without it)

    mesh = trimesh.load(file, force="mesh")
  except ImportError as error:
    raise ValueError(f"{file}: {error.name} reads such meshes: pip install 'gpurobot[urdf]'") from error
  converted = io.BytesIO()
  mesh.export(converted, file_type="stl")
  return converted.getvalue(), ".stl"


def _is_text(stl: bytes) -> bool:
  """Return whether an STL file is text: a binary one has 50 bytes per triangle after the first 84."""
  triangles = int.from_bytes(stl[80:84], "little")
  return stl[:5] == b"solid" and len(stl) != 84 + 50 * triangles


def _add_mimic(spec: mujoco.MjSpec, name: str, mimic: Element) -> None:
  """Let a joint follow another: its position is an offset plus a multiple of the other's.

  Where the other does not move, the joint stays at the offset.
  """
  leader = mimic.get("joint")
  moves = any(joint.name == leader for joint in spec.joints)
  line = [float(mimic.get("offset", 0)), float(mimic.get("multiplier", 1))]
  data = np.zeros(mujoco.mjNEQDATA)
  data[: len(line)] = line
  spec.add_equality(
    type=mjtEq.mjEQ_JOINT,
    objtype=mjtObj.mjOBJ_JOINT,
    name1=name,
    name2=leader if moves else "",
    data=data,
  )


def _add_servo(spec: mujoco.MjSpec, joint: mujoco.MjsJoint, stiffness: float, damping: float) -> None:
  servo = spec.add_actuator(name=joint.name, trntype=mjtTrn.mjTRN_JOINT, target=joint.name)
  limited = joint.range[0] < joint.range[1]
  servo.set_to_position(kp=stiffness, kv=damping, inheritrange=1.0 if limited else 0.0)


def _add_home(spec: mujoco.MjSpec, path: Path, home: dict[str, float]) -> None:
  """Add the keyframe `home`."""
  trial = spec.copy()
  ground = trial.worldbody.add_geom(type=mjtGeom.mjGEOM_PLANE, size=[1, 1, 1], name="ground of read_urdf")
  mj = trial.compile()
  for name in home:
    if mujoco.mj_name2id(mj, mjtObj.mjOBJ_JOINT, name) < 0:
      raise ValueError(f"{path}: home: no joint {name!r}")
  data = mujoco.MjData(mj)
  for joint in range(mj.njnt):
    if mjtJoint(mj.jnt_type[joint]) in SCALAR:
      angle = home.get(mj.joint(joint).name, 0.0)
      low, high = mj.jnt_range[joint] if mj.jnt_limited[joint] else (-np.inf, np.inf)
      data.qpos[mj.jnt_qposadr[joint]] = np.clip(angle, low, high)
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
