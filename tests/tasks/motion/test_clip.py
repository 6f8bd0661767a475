"""Clips: rates, derivatives on rotations, mirror images."""

import dataclasses
import math

import numpy as np

from tasks.motion.clip import Clip
from tasks.motion.rotation import exponential, multiply

SPIN = np.array([0.3, -2.0, 1.1])


def spinning(fps=50.0, frames=41):
  """A root that moves and spins at constant speeds in its own axes, and one joint that swings."""
  time = np.arange(frames)[:, None] / fps
  start = np.tile([0.6, 0.0, 0.8, 0.0], (frames, 1))
  turn = multiply(start, exponential(time * SPIN))
  return Clip("spin", fps, time * [1.0, -0.5, 0.25], turn, np.sin(3 * time), ("knee",))


def test_a_constant_spin_has_its_rate_in_the_axes_of_the_body_in_every_frame():
  linear, angular, joint = spinning().velocities()
  np.testing.assert_allclose(linear, np.tile([1.0, -0.5, 0.25], (41, 1)), atol=1e-12)
  np.testing.assert_allclose(angular, np.tile(SPIN, (41, 1)), atol=1e-12)
  time = np.arange(41) / 50
  assert np.abs(joint[1:-1, 0] - 3 * np.cos(3 * time)[1:-1]).max() < 27 * 0.02**2 / 6


def test_a_part_has_its_first_and_last_frame_and_the_rest_of_the_clip_without_an_end():
  clip = spinning()
  part, rest = clip.part(0.2, 0.6), clip.part(0.2)
  assert (len(part), part.seconds, len(rest)) == (21, 0.4, 31)
  for name in ("root_pos", "root_quat", "joint_pos"):
    np.testing.assert_array_equal(getattr(part, name), getattr(clip, name)[10:31])
    np.testing.assert_array_equal(getattr(rest, name), getattr(clip, name)[10:])


def test_quaternions_of_both_signs_are_the_same_motion():
  clip = spinning()
  signs = np.where(np.arange(41) % 2 == 0, 1.0, -1.0)[:, None]
  flipped = dataclasses.replace(clip, root_quat=clip.root_quat * signs)
  np.testing.assert_allclose(flipped.velocities()[1], clip.velocities()[1], atol=1e-12)
  one, other = flipped.resampled(77.0).root_quat, clip.resampled(77.0).root_quat
  np.testing.assert_allclose(np.abs((one * other).sum(1)), 1.0)


def test_another_rate_has_the_same_motion_and_a_spin_stays_exact():
  clip, denser = spinning(), spinning(fps=125.0, frames=101)
  resampled = clip.resampled(125.0)
  assert math.isclose(resampled.seconds, clip.seconds)
  np.testing.assert_allclose(resampled.root_quat, denser.root_quat, atol=1e-12)
  np.testing.assert_allclose(resampled.root_pos, denser.root_pos, atol=1e-12)
  assert np.abs(resampled.joint_pos - denser.joint_pos).max() < 9 * 0.02**2 / 8
  assert len(clip.resampled(50.0)) == 41
  assert clip.resampled(7.0).seconds <= clip.seconds


def test_a_mirror_image_has_mirrored_velocities_and_twice_is_the_clip_again():
  clip = spinning()
  image = clip.mirrored([0], [-1])
  linear, angular, joint = image.velocities()
  np.testing.assert_allclose(linear[0], [1.0, 0.5, 0.25])
  np.testing.assert_allclose(angular[3], [-0.3, -2.0, -1.1])  # axial
  np.testing.assert_allclose(joint, -clip.velocities()[2])
  np.testing.assert_allclose(image.mirrored([0], [-1]).root_quat, clip.root_quat)


def test_joints_are_chosen_by_name_and_numbers_scaled():
  clip = spinning()
  angles = np.stack([np.full(41, 7.0), clip.joint_pos[:, 0]], 1)
  two = dataclasses.replace(clip, joint_pos=angles, joints=("hip", "knee"))
  assert two.ordered(["knee", "hip"]).joint_pos[0].tolist() == [0.0, 7.0]
  assert two.ordered(["hip"]).joints == ("hip",)
  scaled = clip.scaled(0.01, math.pi / 180).lifted(1.0)
  np.testing.assert_allclose(scaled.root_pos[-1, 2], clip.root_pos[-1, 2] * 0.01 + 1.0)
  np.testing.assert_allclose(scaled.joint_pos, np.radians(clip.joint_pos))
