"""Robots of settings: a mistake is said as it is, without a line of a file that is not to blame."""

import pytest

import train
from tests.physics.robot.robots import ARM, DOG


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (["env.robot=dog.xml"], "error: env.robot=dog.xml: there is no such file in"),
    ([f"env.robot={ARM}"], f"error: {ARM}: its base is fixed, so it cannot walk: add <freejoint/>"),
    (["task=reach", "env.robot=arm.xml"], "error: env.robot=arm.xml: there is no such file in"),
    (["task=reach", f"env.robot={DOG}"], f"error: {DOG}: its base floats, so it is no arm: remove the"),
    (["task=reach", "env.site=grap"], "env.site: no site or body is named 'grap'; nearest: 'grasp'"),
    (["task=reach", "env.joints=[joint1]"], "1 joints move the frame of body 'link1', and an arm has"),
    (["env.feet=[FR_fot,FL_foot]"], "env.feet: no body, geom or site is named 'FR_fot'; nearest: 'FR_foot'"),
  ],
)
@pytest.mark.usefixtures("keep_signal_handlers")
def test_a_robot_that_cannot_walk_or_reach_ends_a_training_in_one_line(
  words, message, capsys, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as ended:
    train.main(words if "task=reach" in words else ["task=walk", *words])
  assert ended.value.code == 2
  error = capsys.readouterr().err
  assert message in error
  assert error.count("\n") == 1
