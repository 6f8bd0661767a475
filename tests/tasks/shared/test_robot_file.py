"""Robots of settings: a mistake is said as it is, without a line of a file that is not to blame."""

import pytest

import train
from tests.physics.robot.robots import ARM


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (["env.robot=dog.xml"], "error: env.robot=dog.xml: there is no such file in"),
    ([f"env.robot={ARM}"], f"error: {ARM}: its base is fixed, so it cannot walk: add <freejoint/>"),
    (["env.feet=[FR_fot,FL_foot]"], "env.feet: no body, geom or site is named 'FR_fot'; nearest: 'FR_foot'"),
  ],
)
@pytest.mark.usefixtures("keep_signal_handlers")
def test_a_robot_that_cannot_walk_ends_a_training_in_one_line(words, message, capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as ended:
    train.main(["task=walk", *words])
  assert ended.value.code == 2
  error = capsys.readouterr().err
  assert message in error
  assert error.count("\n") == 1
