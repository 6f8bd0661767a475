"""The page that plays motions: one robot has the clip's poses, the other one's servos follow."""

import numpy as np
import pytest

from gpurobot.viewer.motion_page import MotionPage
from tasks.motion.clip import states
from tasks.shared import robot_file
from tests.tasks.motion.robots import HUMANOID, Config, own, robot_and_model


@pytest.fixture
def page():
  _, model = robot_and_model()
  scene = robot_file.legged(Config(robot=str(HUMANOID)))[1]
  page = MotionPage(scene, model, [own("wave"), own("squat")], "localhost", 8160)
  yield page
  page.server.stop()


def test_it_plays_the_clip_beside_a_robot_whose_servos_follow(page):
  qpos = states(own("wave"), robot_and_model()[1])[0]
  for _ in range(60):
    page.advance()
    page.draw()
  np.testing.assert_allclose(page.posed.qpos, qpos[60])
  assert page.moved.time == pytest.approx(60 * 0.02)
  assert np.abs(page.moved.qpos[7:] - qpos[60, 7:]).max() < 0.15
  assert page._status.content == "wave: 1.20 s"


def test_it_starts_again_at_the_end_and_with_another_clip(page):
  page.frame = len(own("wave")) - 1
  page.advance()
  assert page.frame == 1
  page._chosen.value = "squat"
  page.advance()
  assert page.name == "squat"
  assert page.frame == 1
  assert len(page.qpos) == len(own("squat"))
