"""Lookup of the names that a user gives, with an error that suggests the nearest one."""

from collections.abc import Iterable

from physics.model.spelling import nearest_word
from physics.robot.description import Asked
from physics.robot.skeleton import Skeleton


def known_name(name: str, names: Iterable[str], kind: str, setting: str, path: str) -> str:
  """Return `name` if `names` has it; otherwise raise ValueError, which names the file and the setting."""
  known = list(names)
  if name in known:
    return name
  hint = f"nearest: '{nearest_word(name, known)}'" if known else f"it has none; leave {setting} out"
  raise ValueError(f"{path}: {setting}: no {kind} is named '{name}'; {hint}")


def named_joints(skeleton: Skeleton, asked: Asked) -> list[int]:
  """Return the moved joints that are asked for; raise ValueError if one is unknown."""
  names = [skeleton.joint_name(joint) for joint in skeleton.joints]
  for name in asked.joints:
    known_name(name, names, "moved joint", "env.joints", asked.path)
  return [joint for joint in skeleton.joints if skeleton.joint_name(joint) in asked.joints]
