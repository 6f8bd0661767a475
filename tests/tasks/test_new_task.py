"""The example of docs/new_task.md is complete, short, and does what it says."""

import re
from pathlib import Path

import pytest
import torch

import tasks
from gpurobot.learn.random import Random

PAGE = (Path(__file__).parents[2] / "docs" / "new_task.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)


@pytest.fixture
def task(tmp_path: Path):
  file = tmp_path / "pendulum.py"
  file.write_text(EXAMPLE)
  module = tasks.load(str(file))
  return module.Task(module.Config(), 16, random=Random(0, 16), training=False)


def test_it_is_shorter_than_40_lines():
  assert len([line for line in EXAMPLE.splitlines() if line.strip()]) < 40


def test_its_motor_can_hold_but_not_lift_the_pole(task):
  """1 kg at half a metre weighs 4.9 N m when level; the motor has 3."""
  task.reset()
  task.sim.qpos.fill_(torch.pi / 2)
  task.step(torch.full((16, 1), -1.0))
  assert (task.sim.qvel[:, 0] > 0.0).all()
  task.sim.qpos.fill_(0.3)
  task.sim.qvel.zero_()
  task.step(torch.full((16, 1), -1.0))
  assert (task.sim.qvel[:, 0] < 0.0).all()


def test_a_whole_episode_pays_what_the_heights_and_efforts_say(task):
  task.reset()
  action = torch.linspace(-1.0, 1.0, 16).unsqueeze(1)
  for count in range(250):
    step = task.step(action)
    up, side, _ = step["final_obs", "policy"].unbind(1)
    torch.testing.assert_close(step["reward"], up - 0.05 * action[:, 0].square())
    torch.testing.assert_close(up.square() + side.square(), torch.ones(16))
    assert step["truncated"].all() == (count == 249)
