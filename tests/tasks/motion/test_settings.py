"""Clips by the settings of a task: names, files, weights, mirror images."""

import numpy as np
import pytest

from tasks.core.errors import SettingError
from tasks.motion import settings
from tasks.motion.read import write_npz
from tests.tasks.motion.robots import Config, own, robot_and_model


def load(**chosen):
  robot, model = robot_and_model()
  return settings.load(Config(**chosen), robot, model, 0.02)


def test_names_and_files_side_by_side_with_weights_and_images(tmp_path):
  write_npz(tmp_path / "mine.npz", own("wave"))
  clips = load(motion=f"squat, {tmp_path / 'mine.npz'}", motion_weights=[1.0, 2.0], motion_mirrored=True)
  assert [clip.name for clip in clips] == ["squat", "mine", "squat mirrored", "mine mirrored"]
  assert [clip.weight for clip in clips] == [1.0, 2.0, 1.0, 2.0]
  np.testing.assert_allclose(clips[1].joint_pos, own("wave").joint_pos)
  right, left = (own("wave").joints.index(f"{side}_shoulder_y") for side in ("right", "left"))
  np.testing.assert_allclose(clips[3].joint_pos[:, left], own("wave").joint_pos[:, right])
  np.testing.assert_allclose(clips[3].joint_pos[:, right], own("wave").joint_pos[:, left])


def test_doubts_are_told_unless_they_are_confirmed(tmp_path, recwarn):
  write_npz(tmp_path / "high.npz", own("wave").lifted(0.1))
  high = str(tmp_path / "high.npz")
  load(motion=f"walk,{high}", motion_doubts=False)
  assert not recwarn
  load(motion=f"walk,{high}")
  (said,) = recwarn
  assert str(said.message).startswith(
    "high: three of four frames are 0.100 m above the ground or higher, 12%"
  )
  assert str(said.message).endswith("raise_by=-0.1 out=<new>.npz; if it is meant, env.motion_doubts=false")


def test_joints_that_a_file_lacks_stay_at_home_and_are_named(tmp_path, recwarn):
  robot, _ = robot_and_model()
  legs = tuple(name for name in robot.joints if "elbow" not in name and "shoulder" not in name)
  write_npz(tmp_path / "legs.npz", own("wave").ordered(legs))
  (clip,) = load(motion=str(tmp_path / "legs.npz"))
  assert clip.joints == robot.joints
  home = dict(zip(robot.joints, robot.angles, strict=True))
  for name, angles, moved in zip(clip.joints, clip.joint_pos.T, own("wave").joint_pos.T, strict=True):
    np.testing.assert_allclose(angles, moved if name in legs else home[name])
  lacking = ", ".join(name for name in robot.joints if name not in legs)
  assert str(recwarn[0].message) == f"{tmp_path / 'legs.npz'} lacks {lacking}: they stay at home"


def test_frames_of_our_own_are_control_steps():
  assert settings.read(Config(motion="wave"), *robot_and_model(), 1 / 30)[0].fps == 30.0


@pytest.mark.parametrize(
  ("chosen", "message"),
  [
    ({"motion": "wlak"}, "env.motion=wlak is no clip of our own, nearest: 'walk', and no file"),
    ({"motion": " , "}, "names no clip: write walk, run, jump, turn, squat, wave, steady_walk, or a file"),
    ({"motion": "walk,run", "motion_weights": [1.0]}, "env.motion_weights has 1 numbers for 2 clips"),
    ({"motion": "walk,run,walk"}, "env.motion names 'walk' twice: name it once"),
    ({"motion": "none.csv"}, "there is no motion file 'none.csv'"),
  ],
)
def test_mistakes_are_told_in_one_line(chosen, message):
  with pytest.raises(SettingError) as error:
    load(**chosen)
  assert message in str(error.value)
  assert "\n" not in str(error.value)
