"""Tests of a recorded policy of humanoid_amp as the reference of others."""

import pytest
import torch

from examples import record_style
from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
from tasks import humanoid_amp
from tasks.core.errors import SettingError
from tasks.motion import transitions

ROBOTS, STEPS = 4, 26


def build(num_envs, **fields):
  config = humanoid_amp.Config(**fields)
  simulation = MujocoSimulation(humanoid_amp.Task.make_model(config), num_envs, humanoid_amp.Task.outputs)
  return humanoid_amp.Task(
    config, num_envs, random=Random(0, num_envs), training=False, simulation=simulation
  )


@pytest.fixture(scope="module")
def found():
  """The second robot is lost."""
  task = build(ROBOTS, command_seconds=1000.0, fall_height=0.0, fall_tilt=-0.5)

  def act(_obs, _restart):
    task.sim.qpos[1, 2:7] = torch.tensor([3.0, 0.0, 1.0, 0.0, 0.0])  # on its head, in the air
    return torch.zeros(ROBOTS, task.num_actions)

  return record_style.record(task, act, STEPS, 1)


def test_pairs_are_a_control_step_apart_and_of_robots_that_stay_up(found):
  assert found.qpos.shape == (2 * (ROBOTS - 1), 2, 28)
  assert found.command.shape == (2 * (ROBOTS - 1), 2)
  first = found.qpos[: ROBOTS - 1], found.qvel[: ROBOTS - 1]  # before they stumble
  moved = 30 * (first[0][:, 1, :3] - first[0][:, 0, :3])
  torch.testing.assert_close(moved, first[1][..., :3].mean(1), atol=0.1, rtol=0)
  assert not found.qpos[:, 0, :2].any()
  assert found.command[: ROBOTS - 1, 0].tolist() == pytest.approx([0.4, 0.8, 1.0])


def test_a_file_of_pairs_is_a_reference_as_it_is(found, tmp_path):
  """It has no offsets: the motion of a policy is a band by itself."""
  file = tmp_path / "walks.npz"
  transitions.write(file, found)
  task = build(2, motion=str(file))
  for kept, wanted in zip(task.starts, found, strict=True):
    torch.testing.assert_close(kept, wanted)
  assert len(task.style_reference) == len(found.qpos)
  both = build(2, motion=f"walks,{file}")
  assert len(both.style_reference) > 4 * transitions.SPEEDS * transitions.PHASES


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"qpos": torch.zeros(6, 2, 9)}, r"qpos has shape \[6, 2, 9\], not \[6, 2, 28\]: record this robot's"),
    ({"command": torch.full((6, 2), torch.nan)}, "command has numbers that are not finite"),
  ],
)
def test_pairs_of_another_robot_are_refused_in_one_line(found, tmp_path, change, message):
  transitions.write(tmp_path / "other.npz", found._replace(**change))
  with pytest.raises(SettingError, match=message):
    build(1, motion=str(tmp_path / "other.npz"))
