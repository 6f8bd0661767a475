"""Pairs of reference states: a control step apart, also after random offsets."""

import pytest
import torch

from tasks.motion import transitions
from tasks.shared import quat
from tests.tasks.motion.robots import own, robot_and_model

DT = 0.02


@pytest.fixture(scope="module")
def walks():
  return transitions.walks(robot_and_model()[1], (0.4, 2.0), 0.4, DT)


def test_walks_have_all_speeds_up_to_the_fastest(walks):
  assert walks.qpos.shape == (transitions.SPEEDS * transitions.PHASES, 2, 28)
  assert walks.command[:, 0].aminmax() == pytest.approx((0.4, transitions.FASTEST))
  torch.testing.assert_close(walks.qvel[..., 0].mean(1), walks.command[:, 0], rtol=0, atol=1e-4)
  torch.testing.assert_close(walks.qvel[:, 0, 5], walks.command[:, 1])


def test_a_clip_obeys_its_mean_speed_and_yaw_rate():
  found = transitions.of_clip(robot_and_model()[1], own("turn"), DT)
  clip = own("turn")
  assert len(found.qpos) == len(clip) - 1
  assert found.command[0, 1].item() == pytest.approx(torch.pi / clip.seconds, rel=0.02)
  assert abs(found.command[0, 0].item()) < 0.05
  torch.testing.assert_close(found.qpos[1:, 0], found.qpos[:-1, 1])


def test_offsets_change_poses_by_their_rates(walks):
  """Between the two states an offset moves by the mean of its two rates."""
  wide = transitions.spread(walks, DT, copies=2, factor=3.0)
  exact = transitions.copied(walks.qpos, 2), transitions.copied(walks.qvel, 2)
  joints = wide.qpos[..., 7:] - exact[0][..., 7:]
  rates = wide.qvel[..., 6:] - exact[1][..., 6:]
  torch.testing.assert_close(joints[:, 1] - joints[:, 0], DT * rates.mean(1), rtol=0, atol=1e-5)
  for found, size in ((joints[:, 0], transitions.JOINTS[0]), (rates[:, 0], transitions.JOINTS[1])):
    assert found.std().item() == pytest.approx(3 * size, rel=0.02)
  assert (rates[:, 1] - rates[:, 0]).std().item() == pytest.approx(3 * transitions.JOINTS[2], rel=0.02)
  tilt = quat.to_rotation_vector(quat.multiply(quat.conjugate(exact[0][:, 0, 3:7]), wide.qpos[:, 0, 3:7]))
  assert tilt.std().item() == pytest.approx(3 * transitions.TURN[0], rel=0.05)


def test_a_short_motion_comes_as_often_as_a_long_one(walks):
  wave = transitions.of_clip(robot_and_model()[1], own("wave"), DT)
  found = transitions.joined([walks, wave])
  assert len(found.qpos) == 2 * len(walks.qpos)
  torch.testing.assert_close(found.qpos[: len(walks.qpos)], walks.qpos)
  index = (found.qpos[len(walks.qpos) :, None, 0] - wave.qpos[:, 0]).abs().sum(2).argmin(1)
  assert index[0] == 0
  assert index[-1] >= len(wave.qpos) - 50  # it ends at rest
  assert (index[1:] >= index[:-1]).float().mean() > 0.9


def test_motions_come_as_often_as_their_weights_say(walks):
  wave = transitions.of_clip(robot_and_model()[1], own("wave"), DT)
  found = transitions.joined([walks, wave], [1.0, 3.0])
  assert len(found.qpos) == 4 * len(walks.qpos)
  found = transitions.joined([walks, wave], [20.0, 1.0])
  assert len(found.qpos) == len(wave.qpos) * 21
