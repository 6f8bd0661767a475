"""Students that see images instead of what their teachers are told."""

import pytest
import torch

import tasks
from gpurobot.run.teachers import extended

HIDDEN = {  # what the student is not told; its teacher, with settings
  "arm_reach_rgb": ({"offset", "turn"}, "arm_reach", {"goal_tilt": 0.0, "goal_turn": 0.0}),
  "cube_lift_depth": ({"cube_position", "cube_axes", "cube_offset"}, "cube_lift", {}),
  "quadruped_rough_depth": ({"scan"}, "quadruped_rough", {}),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_student_sees_images_and_its_teacher_the_state(name, make_task):
  hidden, told, settings = HIDDEN[name]
  task, teacher = make_task(name), make_task(told, **settings)
  obs, other = task.reset(), teacher.reset()
  assert extended(tasks.load(name))[0] == told
  assert task.obs_names["teacher"] == teacher.obs_names["policy"]
  assert {*teacher.obs_names["policy"]} - {*task.obs_names["policy"]} == hidden
  torch.testing.assert_close(obs["teacher"], other["policy"], atol=1e-5, rtol=1e-5)
  critic = "critic" if "critic" in teacher.obs_dims else "policy"
  torch.testing.assert_close(obs["critic"], other[critic], atol=1e-5, rtol=1e-5)
  assert {image.groups for image in task.images.values()} == {("policy",)}
