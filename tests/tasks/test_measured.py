import pytest
import torch

UNMEASURED = {"velocity", "anchor_place"}


@pytest.mark.parametrize("see_velocity", [True, False])
@pytest.mark.parametrize("name", ["quadruped", "quadruped_rough", "biped", "walk", "motion_track"])
def test_the_policy_observes_what_the_robot_measures(name, see_velocity, make_task):
  task = make_task(name, see_velocity=see_velocity)
  task.reset()
  groups, measured = task.observe(), task.seen(task.measure())
  blocks = task.policy_blocks(measured)
  assert [*task.sensors] == [*blocks] == [*groups["policy"]]
  assert all(torch.equal(block, groups["policy"][own]) for own, block in blocks.items())
  assert bool(UNMEASURED & {*measured}) == see_velocity
  assert UNMEASURED & {*groups["critic"]}


def test_a_history_is_beside_what_is_measured(make_task):
  task = make_task("quadruped", history_policy=4)
  assert task.obs_dims == {"policy": 4 * 47, "critic": 61}
