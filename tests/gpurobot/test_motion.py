"""`python -m gpurobot.motion`: what a motion asks of a robot, its conversion, and mistakes in one line."""

import dataclasses
import re

import numpy as np
import pytest

from gpurobot import motion
from tasks.motion import settings
from tasks.motion.read import write_npz
from tasks.shared import robot_file
from tests.mistakes.told import told
from tests.tasks.motion.robots import BIPED, own


def test_it_tells_what_a_clip_asks_of_the_humanoid(capsys):
  motion.main(["squat"])
  lines = capsys.readouterr().out.splitlines()
  assert lines[0].startswith("squat: 251 frames, 5.00 s at 50 frames/s, on ")
  assert lines[1].startswith("root: path of ")
  assert all(line.startswith("good     ") for line in lines[-4:])
  course = r"good +as it faces, -?0\.0\d m ahead and 0\.00 m to the left, on a path of 0\.\d\d m"
  assert re.fullmatch(course, lines[-2])
  knee = next(line.split() for line in lines if line.startswith("left_knee"))
  assert float(knee[2]) > 1.8
  assert knee[3:6] == ["-0.03", "to", "2.79"]


def test_it_converts_units_and_rates_and_reads_what_it_wrote(tmp_path, capsys):
  clip = own("wave")
  rows = [own("wave").root_pos * 100, np.roll(clip.root_quat, -1, axis=1), np.degrees(clip.joint_pos)]
  np.savetxt(tmp_path / "in.csv", np.concatenate(rows, 1), delimiter=",")
  out = tmp_path / "out.npz"
  said = ["motion_quaternion=xyzw", "env.motion_fps=50", "degrees=true", "scale=0.01"]
  motion.main([str(tmp_path / "in.csv"), *said, f"out={out}", "out_fps=25"])
  assert f"wrote {out}: 118 frames at 25 frames/s" in capsys.readouterr().out
  motion.main([str(out)])
  assert capsys.readouterr().out.startswith("out: 118 frames, 4.68 s at 25 frames/s")


def test_a_wrong_order_of_quaternions_walks_backwards(tmp_path, capsys):
  motion.main(["walk", f"out={tmp_path / 'walk.npz'}"])
  assert "m ahead and 0.0" in (right := capsys.readouterr().out)
  assert "as it faces, -" not in right
  arrays = dict(np.load(tmp_path / "walk.npz"))
  rows = [arrays["root_pos"], np.roll(arrays["root_quat"], -1, axis=1), arrays["joint_pos"]]
  np.savetxt(tmp_path / "walk.csv", np.concatenate(rows, 1), delimiter=",")
  said = [str(tmp_path / "walk.csv"), "motion_quaternion=wxyz", "motion_fps=50"]
  motion.main(said)
  found = capsys.readouterr().out
  assert "doubtful as it faces, -2." in found
  assert "if its quaternions are xyzw, reorder them: gpurobot motion <file> reorder=xyzw out=" in found
  motion.main([*said, "reorder=xyzw", f"out={tmp_path / 'right.npz'}"])
  np.testing.assert_allclose(np.load(tmp_path / "right.npz")["root_quat"], arrays["root_quat"], atol=1e-12)


def test_a_rise_is_taken_out(tmp_path, capsys):
  clip = own("walk")
  write_npz(tmp_path / "rises.npz", clip.lifted(np.linspace(0.1, 0.4, len(clip))))
  motion.main([str(tmp_path / "rises.npz"), "level=true", f"out={tmp_path / 'level.npz'}"])
  assert "doubtful" not in capsys.readouterr().out
  np.testing.assert_allclose(np.load(tmp_path / "level.npz")["root_pos"], clip.root_pos, atol=0.002)


def test_sunk_frames_are_raised(tmp_path, capsys):
  clip = own("wave")
  write_npz(tmp_path / "sunk.npz", clip.lifted(np.where(np.arange(len(clip)) < 20, -0.3, 0.0)))
  motion.main([str(tmp_path / "sunk.npz"), "raise_sunk=true", f"out={tmp_path / 'risen.npz'}"])
  assert re.search(r"lowest point: -?0\.\d to \d+\.\d mm", capsys.readouterr().out)
  height = np.load(tmp_path / "risen.npz")["root_pos"][:, 2]
  np.testing.assert_allclose(height[[0, 10, -1]], clip.root_pos[[0, 10, -1], 2], atol=0.002)


def test_what_is_wrong_with_a_motion_follows_its_statistics(capsys):
  with pytest.raises(SystemExit):
    motion.main(["walk", "raise_by=-0.5"])
  said = capsys.readouterr()
  assert said.out.startswith("walk: ")
  assert "m under the ground: move it by gpurobot motion <file> raise_by=0.5" in said.err


def test_it_takes_a_part(capsys):
  motion.main(["squat", "begin=1", "end=3.5"])
  assert capsys.readouterr().out.startswith("squat: 126 frames, 2.50 s at 50 frames/s")


def test_it_takes_other_robots(capsys):
  motion.main(["wave", f"env.robot={BIPED}"])
  assert "right_shoulder_roll" in capsys.readouterr().out


def test_it_has_the_settings_of_the_task():
  names = {field.name for field in dataclasses.fields(motion.Motion)}
  assert {field.name for field in dataclasses.fields(settings.Config)} <= names
  assert {field.name for field in dataclasses.fields(robot_file.LegsConfig)} <= names


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (["walk", "scale=100"], "if these are centimetres, convert them: gpurobot motion <file> scale=0.01"),
    (["walk", "out=walk.csv"], "out=walk.csv: write a name that ends with .npz"),
    (["walk", "begin=60"], "and 0 frames between begin=60 and end=null: two or more make a motion"),
    (["walk,run", "out=both.npz"], "out=both.npz is one file for 2 motions: convert one at a time"),
    (["walk", "out=none/walk.npz"], "out=none/walk.npz cannot be written: No such file or directory"),
  ],
)
def test_a_mistake_ends_it_in_one_line(words, message, capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert message in told(capsys, motion.main, words)


def test_a_clip_of_the_wrong_robot_names_the_joint(tmp_path, capsys):
  write_npz(tmp_path / "a.npz", own("wave"))
  line = told(capsys, motion.main, [str(tmp_path / "a.npz"), f"robot={BIPED}"])
  assert "has no joint 'left_hip_pitch' of the robot, nearest: 'left_hip_" in line
