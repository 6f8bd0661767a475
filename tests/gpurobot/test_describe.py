"""`python -m gpurobot.describe`: what is found in a robot's file, and mistakes in one line."""

import dataclasses

import pytest
from PIL import Image

from gpurobot import describe
from tasks import walk
from tasks.shared import robot_file
from tests.mistakes.told import told
from tests.physics.robot import arms, robots
from tests.physics.robot.robots import ARM, DOG


def test_it_tells_what_is_found(capsys):
  describe.main([str(DOG)])
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == f"{DOG}: 4 legs, 12 joints, 13.1 kg, left and right mirrored"
  assert "leg of FR_foot: FR_hip, FR_thigh, FR_calf" in lines
  assert "FR_calf   -1.8  35         0.5      35.5    FL_calf" in lines
  assert "FR_hip    0     35         0.5      23.7    -FL_hip" in lines


def test_it_tells_what_an_arm_is(capsys):
  describe.main([str(ARM)])
  lines = capsys.readouterr().out.splitlines()
  assert lines[0].startswith(f"{ARM}: an arm of 7 joints, 17.5 kg, reach 0.9")
  assert lines[1].startswith("tip site 'grasp'; home home; targets in x -0.9")
  assert "held at home: left_finger, right_finger" in lines
  assert ["joint4", "-2.62", "400", "80", "87", "-3.07", "to", "-0.0698"] in [line.split() for line in lines]


def test_it_tells_what_an_arm_can_lift(tmp_path, capsys):
  describe.main([str(ARM)])
  lines = capsys.readouterr().out.splitlines()
  assert "gripper opened by left_finger, right_finger to 8 cm, for a cube of 4.8 cm" in lines
  assert "cube on the floor, about x = 0.48, y = 0 m" in lines
  describe.main([arms.write(tmp_path, arms.urdf())])
  assert "so it has no gripper: name the arm's joints" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(("text", "kind"), [(robots.urdf(), "4 legs"), (arms.urdf(), "an arm of 3 joints")])
def test_a_urdf_has_legs_if_several_chains_leave_its_base(text, kind, tmp_path, capsys):
  (tmp_path / "robot.urdf").write_text(text)
  describe.main([str(tmp_path / "robot.urdf")])
  assert kind in capsys.readouterr().out.splitlines()[0]


def test_it_takes_the_settings_of_the_tasks_that_say_what_a_robot_is(capsys):
  names = {field.name for field in dataclasses.fields(describe.Description)}
  assert {field.name for field in dataclasses.fields(robot_file.LegsConfig)} <= names
  assert {field.name for field in dataclasses.fields(robot_file.ArmConfig)} <= names
  describe.main([str(DOG), "stiffness=50", "damping=2", "self_collision=true"])
  assert "FR_calf   -1.8  50         2        35.5    FL_calf" in capsys.readouterr().out.splitlines()


def test_it_doubts_what_walk_doubts(tmp_path, capsys):
  file = tmp_path / "dog.xml"
  file.write_text(robots.mjcf(corners={**robots.CORNERS, "fr": (0.2, 0.07)}))  # two legs overlap at home
  found, _ = robot_file.legged(walk.Config(robot=str(file)))
  describe.main([str(file)])
  assert found.doubts
  assert found.summary() in capsys.readouterr().out


@pytest.mark.parametrize(
  ("words", "message"),
  [
    ([str(ARM), "site=grap"], "env.site: no site or body is named 'grap'; nearest: 'grasp'"),
    ([str(ARM), "joints=[joint1]"], "1 joints move the frame of body 'link1', and an arm has 2 or more"),
    ([f"robot={DOG}", "feet=[FR_fot]"], "no body, geom or site is named 'FR_fot'; nearest: 'FR_foot'"),
  ],
)
def test_a_mistake_ends_it_in_one_line(words, message, capsys):
  assert message in told(capsys, describe.main, words)


def test_it_draws_the_robot_at_home(tmp_path, capsys, drawing):
  file = tmp_path / "dog.png"
  describe.main([str(DOG), f"picture={file}", "width=64", "height=48"])
  picture = Image.open(file)
  assert picture.size == (64, 48)
  assert len(picture.getcolors(64 * 48)) > 20
  assert f"wrote {file}" in capsys.readouterr().out
