"""`python -m gpurobot.describe`: what is found in a robot's file, and mistakes in one line."""

import pytest
from PIL import Image

from gpurobot import describe
from tests.physics.robot.robots import ARM, DOG


def test_it_tells_what_is_found(capsys):
  describe.main([str(DOG)])
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == f"{DOG}: 4 legs, 12 joints, 13.1 kg, left and right mirrored"
  assert "leg of FR_foot: FR_hip, FR_thigh, FR_calf" in lines
  assert "FR_calf   -1.8  35         0.5      35.5    FL_calf" in lines
  assert "FR_hip    0     35         0.5      23.7    -FL_hip" in lines


@pytest.mark.parametrize(
  ("words", "message"),
  [
    ([], "the robot is missing: write python -m gpurobot.describe <robot file>"),
    ([str(ARM)], "its base is fixed, so it cannot walk"),
    ([f"robot={DOG}", "feet=[FR_fot]"], "no body, geom or site is named 'FR_fot'; nearest: 'FR_foot'"),
    ([str(DOG), "picture=dog.tiff"], "write a name that ends with .png"),
    ([str(DOG), "fete=[FR_foot]"], "unknown key 'fete'"),
    ([str(DOG.with_name("robt.xml"))], "there is no such file"),
  ],
)
def test_a_mistake_ends_it_in_one_line(words, message, capsys):
  with pytest.raises(SystemExit) as ended:
    describe.main(words)
  assert ended.value.code == 2
  error = capsys.readouterr().err
  assert message in error
  assert error.count("\n") == 1


def test_it_draws_the_robot_at_home(tmp_path, capsys, drawing):
  file = tmp_path / "dog.png"
  describe.main([str(DOG), f"picture={file}", "width=64", "height=48"])
  picture = Image.open(file)
  assert picture.size == (64, 48)
  assert len(picture.getcolors(64 * 48)) > 20
  assert f"wrote {file}" in capsys.readouterr().out
