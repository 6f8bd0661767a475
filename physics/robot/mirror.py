"""Mirror symmetry of a robot: each joint's partner when left and right are exchanged, and its sign."""

import re

import numpy as np
from mujoco import mjtJoint

from physics.model.model import Floats
from physics.robot.skeleton import Skeleton

Mirrored = tuple[list[int], list[int]]

PLACE = np.array([1.0, -1.0, 1.0])  # image of a point, or of the axis of a slide joint
TURN = np.array([-1.0, 1.0, -1.0])  # image of an axis of rotation
CLOSE = 0.03  # largest distance of a joint from the image of its partner, relative to the robot's size
ALIKE = 0.95  # smallest cosine between their axes
SIDES = (("left", "right"), ("l", "r"), ("fl", "fr"), ("rl", "rr"), ("hl", "hr"), ("lf", "rf"), ("lh", "rh"))


def mirror_of(skeleton: Skeleton) -> Mirrored | None:
  """Return each joint's partner in the mirror, and the sign of the partner's motion, 1 or -1.

  The mirror is the plane of the trunk's x and z axes. Joints are paired by place and axis at the present
  pose, else by name; None if neither pairs them all.
  """
  places = np.array([skeleton.anchor(joint) for joint in skeleton.joints])
  axes = np.array([skeleton.axis(joint) for joint in skeleton.joints])
  slide = skeleton.mj.jnt_type[skeleton.joints] == mjtJoint.mjJNT_SLIDE
  images = axes * np.where(slide[:, None], PLACE, TURN)
  aligned = images @ axes.T  # of the image of each joint and of each joint
  return _by_place(places, aligned, slide) or _by_name(skeleton, aligned)


def _by_place(places: Floats, aligned: Floats, slide: Floats) -> Mirrored | None:
  distances = np.linalg.norm((places * PLACE)[:, None] - places[None], axis=2)
  size = np.ptp(places, axis=0).max()
  fits = (distances < CLOSE * size) & (np.abs(aligned) > ALIKE) & (slide[:, None] == slide[None])
  partners = np.where(fits, distances, np.inf).argmin(1)
  return _checked(partners, aligned, fits[np.arange(len(partners)), partners])


def _by_name(skeleton: Skeleton, aligned: Floats) -> Mirrored | None:
  names = [skeleton.joint_name(joint) for joint in skeleton.joints]
  images = [_image(name) for name in names]
  if not set(images) <= set(names) or images == names:
    return None
  partners = np.array([names.index(image) for image in images])
  return _checked(partners, aligned, np.ones(len(names), bool))


def _checked(partners: Floats, aligned: Floats, fits: Floats) -> Mirrored | None:
  """Return partners and signs if all fit and the partner of each joint's partner is the joint itself."""
  own = np.arange(len(partners))
  signs = np.where(aligned[own, partners] > 0, 1, -1)
  if not fits.all() or not (partners[partners] == own).all() or not (signs[partners] == signs).all():
    return None
  return partners.tolist(), signs.tolist()


def _image(name: str) -> str:
  """Return a name with left and right exchanged: FL_hip becomes FR_hip, hip_left becomes hip_right."""
  exchanged = {one: other for pair in SIDES for one, other in (pair, pair[::-1])}
  parts = re.split(r"([^A-Za-z]+|(?<=[a-z])(?=[A-Z]))", name)

  def turned(part: str) -> str:
    image = exchanged.get(part.lower())
    if image is None:
      return part
    return image.upper() if part.isupper() else image.capitalize() if part[:1].isupper() else image

  return "".join(turned(part) for part in parts)
