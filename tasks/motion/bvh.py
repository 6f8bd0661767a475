"""BVH files of motion capture, and their transfer to our humanoid.

A BVH file has a skeleton of offsets with rotations about named axes; y is up, and the person looks along z.
Where its joints are is scaled to the length of the robot's legs, so its unit does not matter. The robot's
bodies follow by inverse kinematics.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from physics import host
from physics.inverse_kinematics import Goal, follow
from physics.robot import LeggedRobot
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip, Floats, root_joint
from tasks.motion.read import check_rate, check_values
from tasks.motion.rotation import exponential, multiply, rotate

# Joints by the names that capture systems give them, without case and separators, for bodies of the humanoid.
JOINTS = {
  "pelvis": ("hips", "pelvis", "root"),
  "{side}_thigh": ("{side}upleg", "{side}hip", "{side}thigh", "{side}upperleg"),
  "{side}_shin": ("{side}leg", "{side}knee", "{side}shin", "{side}lowleg", "{side}lowerleg"),
  "{side}_foot": ("{side}foot", "{side}ankle"),
  "{side}_upper_arm": ("{side}arm", "{side}uparm", "{side}upperarm"),
  "{side}_lower_arm": ("{side}forearm", "{side}elbow", "{side}lowarm", "{side}lowerarm"),
  "{side}_hand": ("{side}hand", "{side}wrist"),
}
AXES = {"x": 0, "y": 1, "z": 2}
CHANNELS = tuple(f"{axis}{kind}" for kind in ("position", "rotation") for axis in "XYZ")
LEGS = [[f"{side}_{part}" for part in ("thigh", "shin", "foot")] for side in ("left", "right")]
UP = [2, 0, 1]  # our x, y and z in the axes of a BVH file
ANKLE, KNEE, TRUNK, ARM, FLAT, REST = 1000.0, 100.0, 100.0, 100.0, 30.0, 0.1  # weights of squared errors


@dataclass
class Node:
  """Joint of a skeleton."""

  name: str
  parent: int  # -1: the root
  offset: Floats = field(default_factory=lambda: np.zeros(3))  # from its parent
  channels: tuple[str, ...] = ()


def read_bvh(path: Path, robot: LeggedRobot, model: Any) -> Clip:
  """Return the clip of a BVH file on our humanoid; raise SettingError in one line."""
  nodes, fps, values = _parse(path)
  places = {node.name: place for node, place in zip(nodes, _places(nodes, values), strict=True)}
  found = {body: _place_of(path, body, places) for body in _bodies()}
  missing = next((body for body in _bodies() if "hand" not in body and body not in model.body_names), None)
  if missing is not None:
    raise SettingError(f"{path}: BVH files are for our humanoid, {robot.path} has no body '{missing}'")
  if min(_length({body: place[0] for body, place in found.items()}, *leg) for leg in LEGS) == 0:
    raise SettingError(f"{path}: the length of a leg is 0: OFFSET says where a joint is from its parent")
  qpos = _follow(found, model)
  root = int(model.jnt_qposadr[root_joint(model)])
  columns = model.jnt_qposadr[[model.joint_id(joint) for joint in robot.joints]]
  pose = qpos[:, root : root + 7].copy()
  pose[:, :2] -= pose[0, :2].copy()
  return Clip(path.stem, fps, pose[:, :3], pose[:, 3:], qpos[:, columns], robot.joints)


def _bodies() -> Iterator[str]:
  for body in JOINTS:
    yield from (body.format(side=side) for side in ("left", "right")) if "{" in body else [body]


def _place_of(path: Path, body: str, places: dict[str, Floats]) -> Floats:
  """Return the path [T, 3] of the joint that stands for a body; raise SettingError if there is none."""
  side, _, part = body.partition("_") if body.startswith(("left_", "right_")) else ("", "", body)
  words = JOINTS[f"{{side}}_{part}" if side else body]
  wanted = [word.format(side=one) for one in (side, side[:1]) for word in words]
  wanted += [word.format(side="") + one for one in (side, side[:1]) for word in words if side]
  for name, place in places.items():
    if "".join(letter for letter in name.rpartition(":")[2].lower() if letter.isalpha()) in wanted:
      return place
  raise SettingError(
    f"{path}: no joint is the {body.replace('_', ' ')}, as '{wanted[0]}': it has {', '.join(places)}"
  )


def _parse(path: Path) -> tuple[list[Node], float, Floats]:
  """Return the joints of a file, its frames per second, and the values of all channels [T, channels]."""
  if not path.is_file():
    raise SettingError(f"there is no motion file '{path.name}' in {path.absolute().parent}")
  words = path.read_text(encoding="utf-8", errors="replace").split()
  if words[:1] != ["HIERARCHY"] or "MOTION" not in words:
    raise SettingError(f"{path} is no BVH file: its parts are HIERARCHY and MOTION")
  try:
    start = words.index("MOTION")
    nodes = _hierarchy(words[1:start])
    count, step = int(words[start + 2]), float(words[start + 5])
    numbers = np.array([float(word) for word in words[start + 6 :]])
    values = numbers.reshape(count, sum(len(node.channels) for node in nodes))
  except (ValueError, IndexError) as error:
    raise SettingError(f"{path} cannot be read as BVH: {error}") from error
  if count < 2 or not 0 < step < math.inf:
    raise SettingError(f"{path}: it has {count} frames of {step:g} s: a motion has two or more")
  check_rate(path, 1.0 / step)
  check_values(path, values)
  return nodes, 1.0 / step, values


def _hierarchy(words: Sequence[str]) -> list[Node]:
  """Return the joints of the part HIERARCHY, parents first; the ends of limbs are none."""
  nodes, open_nodes, i = list[Node](), list[int](), 0
  while i < len(words):
    word = words[i]
    if word in ("ROOT", "JOINT"):
      nodes.append(Node(words[i + 1], open_nodes[-1] if open_nodes else -1))
      open_nodes.append(len(nodes) - 1)
    elif word == "End":
      open_nodes.append(-1)
    elif word == "OFFSET" and open_nodes[-1] >= 0:
      nodes[open_nodes[-1]].offset = np.array([float(number) for number in words[i + 1 : i + 4]])
    elif word == "CHANNELS":
      count = int(words[i + 1])
      channels = tuple(words[i + 2 : i + 2 + count])
      unknown = next((word for word in channels if word not in CHANNELS), None)
      if unknown is not None:
        raise ValueError(f"'{unknown}' is no channel, such as {CHANNELS[0]}")
      nodes[open_nodes[-1]].channels = channels
    elif word == "}":
      open_nodes.pop()
    i += 2 if word in ("ROOT", "JOINT", "End") else 1
  if not nodes:
    raise ValueError("it has no joints")
  return nodes


def _places(nodes: Sequence[Node], values: Floats) -> list[Floats]:
  """Return where the joints are [T, 3], in our axes and the unit of the file."""
  turns, places, column = list[Floats](), list[Floats](), 0
  for node in nodes:
    place, turn = np.tile(node.offset, (len(values), 1)), np.tile([1.0, 0.0, 0.0, 0.0], (len(values), 1))
    for channel in node.channels:
      axis = AXES[channel[0].lower()]
      if channel.endswith("position"):
        place[:, axis] = values[:, column]
      else:
        vector = np.zeros((len(values), 3))
        vector[:, axis] = np.radians(values[:, column])
        turn = multiply(turn, exponential(vector))
      column += 1
    if node.parent >= 0:
      place = places[node.parent] + rotate(turns[node.parent], place)
      turn = multiply(turns[node.parent], turn)
    turns.append(turn)
    places.append(place)
  return [place[:, UP] for place in places]


def _follow(found: dict[str, Floats], model: Any) -> Floats:
  """Return configurations [T, nq] of the humanoid with its bodies at the joints of a person."""
  home = model.key_qpos[model.key_id("home")]
  at_home = host.evaluate(model, {"qpos": home[None]}, ["xpos", "xquat"])
  rest = {name: at_home["xpos"][0, model.body_id(name)] for name in found if "hand" not in name}
  scale = _length(rest, *LEGS[0]) / _length({name: place[0] for name, place in found.items()}, *LEGS[0])
  scaled = {name: scale * place for name, place in found.items()}
  ankles = np.minimum(scaled["left_foot"][:, 2], scaled["right_foot"][:, 2])
  rise = rest["left_foot"][2] - np.percentile(ankles, 5)  # ankles are at home where a foot stands
  scaled = {name: place + np.array([0.0, 0.0, rise]) for name, place in scaled.items()}
  heading = _heading(scaled, "thigh")
  goals = [Goal("pose", np.tile(home, (len(heading), 1)), REST)]
  goals.append(Goal("turn", heading, TRUNK, model.body_id("pelvis")))
  goals.append(Goal("turn", _lean(scaled), TRUNK, model.body_id("torso")))
  above = rest["pelvis"] - _between(rest, "thigh")  # of the pelvis over the hips
  goals.append(Goal("place", _between(scaled, "thigh") + above, TRUNK, model.body_id("pelvis")))
  for side in ("left", "right"):
    foot = model.body_id(f"{side}_foot")
    goals.append(Goal("place", scaled[f"{side}_foot"], ANKLE, foot))
    goals.append(Goal("turn", heading, FLAT, foot))
    goals.append(Goal("place", scaled[f"{side}_shin"], KNEE, model.body_id(f"{side}_shin")))
    goals += _arm(side, scaled, rest, model)
  return follow(model, home, goals)


def _arm(side: str, scaled: dict[str, Floats], rest: dict[str, Floats], model: Any) -> list[Goal]:
  """Return where an arm is if its two parts point as the person's do."""
  lower, hips = model.body_id(f"{side}_lower_arm"), _between(scaled, "thigh")
  at_home = np.broadcast_to(rest[f"{side}_upper_arm"] - _between(rest, "thigh"), hips.shape)
  shoulder = hips + rotate(_lean(scaled), at_home)
  upper_length = np.linalg.norm(rest[f"{side}_lower_arm"] - rest[f"{side}_upper_arm"])
  elbow = shoulder + upper_length * _direction(scaled, f"{side}_upper_arm", f"{side}_lower_arm")
  middle = np.linalg.norm(model.body_ipos[lower]) * _direction(scaled, f"{side}_lower_arm", f"{side}_hand")
  return [Goal("place", elbow, ARM, lower), Goal("middle", elbow + middle, ARM, lower)]


def _heading(places: dict[str, Floats], part: str) -> Floats:
  """Return the rotations [T, 4] about z that turn the robot to where a person's hips or shoulders face."""
  across = places[f"left_{part}"] - places[f"right_{part}"]
  zero = np.zeros(len(across))
  return exponential(np.stack([zero, zero, np.unwrap(np.arctan2(-across[:, 0], across[:, 1]))], 1))


def _lean(places: dict[str, Floats]) -> Floats:
  """Return the rotations [T, 4] of the torso: as the line from hips to shoulders leans, and they face."""
  up = _between(places, "upper_arm") - _between(places, "thigh")
  flat = np.linalg.norm(up[:, :2], axis=1)
  angle = np.arctan2(flat, up[:, 2]) / np.maximum(flat, 1e-9)
  axis = np.stack([-up[:, 1], up[:, 0], np.zeros(len(up))], 1)
  return multiply(exponential(angle[:, None] * axis), _heading(places, "upper_arm"))


def _between(places: dict[str, Floats], part: str) -> Floats:
  """Return the middle of the left and the right part [..., 3]."""
  return (places[f"left_{part}"] + places[f"right_{part}"]) / 2


def _direction(places: dict[str, Floats], start: str, end: str) -> Floats:
  """Return unit vectors [T, 3] from one joint to another."""
  vector = places[end] - places[start]
  return vector / np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), 1e-9)


def _length(places: dict[str, Floats], *chain: str) -> float:
  """Return the length of a chain of joints."""
  return sum(float(np.linalg.norm(places[other] - places[one])) for one, other in itertools.pairwise(chain))
