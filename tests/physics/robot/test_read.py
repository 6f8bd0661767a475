"""Reader of any robot: legs or an arm, as the file says."""

import pytest

from physics.robot import Arm, LeggedRobot, read_robot
from tests.physics.robot import arms, robots

CUBE = '<body name="cube" pos="1 0 1"><freejoint/><geom size="0.02"/></body>'


@pytest.mark.parametrize(
  ("text", "kind"),
  [
    (robots.mjcf(), LeggedRobot),
    (robots.urdf(), LeggedRobot),
    (arms.mjcf(), Arm),
    (arms.mjcf().replace("<worldbody>", f"<worldbody>{CUBE}"), Arm),
    (arms.urdf(), Arm),
  ],
  ids=["legs of MJCF", "legs of URDF", "arm of MJCF", "arm beside a cube", "arm of URDF"],
)
def test_a_robot_has_legs_or_is_an_arm(text, kind, tmp_path):
  robot, _ = read_robot(arms.asked(tmp_path, text))
  assert isinstance(robot, kind)


def test_a_site_that_reaches_is_one_of_an_arm(tmp_path):
  robot, _ = read_robot(arms.asked(tmp_path, robots.urdf(), site="fl_foot"))
  assert isinstance(robot, Arm)
  assert robot.joints == ("fl_hip", "fl_knee")


def test_a_urdf_whose_chains_are_no_legs_may_have_arms(tmp_path):
  raised = robots.urdf().replace('size="0.5 0.2 0.1"', 'size="0.5 0.2 3"')
  with pytest.raises(ValueError, match=r"no legs found.* env.feet=.*, or the tip of an arm as env.site$"):
    read_robot(arms.asked(tmp_path, raised))
  robot, _ = read_robot(arms.asked(tmp_path, raised, site="fl_foot"))
  assert isinstance(robot, Arm)
