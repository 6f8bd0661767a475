"""Ranges that grow by success: by hand, until the edge of what a task can do, over ranks, after a resume."""

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import cartpole, quadruped_getup
from tasks.shared import randomize
from tasks.shared.auto_randomize import AutomaticRandomization, Growth, ends

DRAWS = {
  "pole": randomize.scale("body_mass", 0.5, 4.0, log=True),
  "rail": randomize.add("gravity", -2.0, 6.0, 2),
}


class Task(cartpole.Task):
  """Cartpole of one step that succeeds if the pole is not heavier than 2 of its masses."""

  vary = ("body_mass", "gravity")
  growth = Growth()

  def setup(self):
    super().setup()
    self.extent = self.buffer(ends(DRAWS), lasting=True)
    self.probe = self.buffer(dtype=torch.int64)
    starts = {"pole": 1.0, "rail": 0.0}
    self.ranges = AutomaticRandomization(self, DRAWS, starts, (self.extent, self.probe), self.growth)
    self.mass = self.constant(self.model.body_mass)

  def initial_state(self):
    return super().initial_state() | self.ranges.draw()

  def success(self):
    return self.factor() <= 2.0

  def factor(self):
    return self.sim.body_mass[:, -1] / self.mass[-1]


def make(num_envs=32, first=0, training=True, growth=None):
  Task.growth = growth or Growth()
  config = cartpole.Config(episode_steps=1)
  task = Task(config, num_envs, random=Random(0, num_envs, first), training=training)
  task.reset()
  return task


def go(task, steps):
  for _ in range(steps):
    task.step(torch.zeros(task.num_envs, 1))
  return task


def test_ranges_begin_at_a_point():
  task = make(growth=Growth(share=0.0))
  torch.testing.assert_close(task.factor(), torch.ones(32))
  assert not task.extent.any()
  assert not task.probe.any()


def test_an_end_moves_out_by_a_success_and_in_by_a_failure():
  task = make(4)
  task.extent.fill_(0.5)
  task.probe.copy_(torch.tensor([0, 2, 3, 3]))  # the low end of the rail, the high end of the pole twice
  task.sim.body_mass[:, -1] = task.mass[-1] * torch.tensor([1.0, 1.0, 1.0, 3.0])
  expected = torch.full((4, 4), 0.5)
  expected[1, 1], expected[2, 2], expected[3, 2] = 0.55, 0.55, 0.5 - 0.05 * 4
  torch.testing.assert_close(task.ranges.grown(), expected)
  task.extent.fill_(0.0)
  assert float(task.ranges.grown().min()) == 0
  task.extent.fill_(1.0)
  assert float(task.ranges.grown().max()) == 1


def test_numbers_are_within_their_ranges_and_at_the_end_that_is_probed():
  task = go(make(256, growth=Growth(share=0.5)), 40)
  low, high = 0.5 ** task.extent[:, 0], 4.0 ** task.extent[:, 2]
  factor, gravity = task.factor(), task.sim.gravity[:, 2] - task.model.gravity[2]
  assert ((factor >= low - 1e-5) & (factor <= high + 1e-5)).all()
  assert ((gravity >= -2 * task.extent[:, 1] - 1e-5) & (gravity <= 6 * task.extent[:, 3] + 1e-5)).all()
  for end, number, edge in ((1, factor, low), (3, factor, high), (2, gravity, -2 * task.extent[:, 1])):
    here = task.probe == end
    assert here.sum() > 10
    torch.testing.assert_close(number[here], edge[here], rtol=1e-5, atol=1e-5)
  assert 80 < int((task.probe == 0).sum()) < 176


def test_ranges_grow_as_far_as_the_robot_can():
  """Half of the way to 4 masses, in logarithms, is 2 masses; no end of the other numbers does harm."""
  task = go(make(64, growth=Growth(step=0.02, target=0.8, share=1.0)), 600)
  lightest, _, heaviest, _ = task.extent.mean(0).tolist()
  assert lightest == pytest.approx(1, abs=0.02)
  assert heaviest == pytest.approx(0.5, abs=0.06)
  assert task.extent[:, 2].max() < 0.55


def test_two_ranks_do_what_one_does():
  one, parts = go(make(32), 20), [go(make(16, first), 20) for first in (0, 16)]
  for name in ("extent", "probe"):
    assert torch.equal(getattr(one, name), torch.cat([getattr(part, name) for part in parts]))
  assert one.extent.any()


def test_a_restored_task_goes_on_with_the_same_ranges():
  one, other = go(make(8), 10), make(8)
  other.load_state_dict(one.state_dict())
  go(one, 10)
  go(other, 10)
  assert torch.equal(one.extent, other.extent)
  assert torch.equal(one.sim.body_mass, other.sim.body_mass)


def test_out_of_training_the_robot_is_that_of_its_file():
  task = go(make(8, training=False), 5)
  torch.testing.assert_close(task.factor(), torch.ones(8))
  assert not task.extent.any()


def test_what_cannot_be_is_said():
  with pytest.raises(ValueError, match="the range of 'pole' begins at 5, outside of its draw"):
    AutomaticRandomization(make(2), DRAWS, {"pole": 5.0, "rail": 0.0}, (torch.zeros(2, 4), torch.zeros(2)))
  with pytest.raises(ValueError, match="write 0 < step, 0 < target < 1 and 0 <= share <= 1"):
    Growth(target=1.0)


def test_a_robot_that_gets_up_has_ranges_that_grow():
  config = quadruped_getup.Config(automatic=True, episode_steps=2, trunk_mass=0.5)
  task = quadruped_getup.Task(config, 16, random=Random(0, 16))
  task.reset()
  mass = task.constant(task.model.body_mass)[task.trunk].sum()
  assert {*task.lasting} == {"extent"}
  steps = [task.step(torch.zeros(16, 12)) for _ in range(20)]
  factor = task.sim.body_mass[:, task.trunk].sum(1) / mass
  low, high = 1 - 0.5 * task.extent[:, 1], 1 + 0.5 * task.extent[:, 3]
  assert ((factor >= low - 1e-5) & (factor <= high + 1e-5)).all()
  assert torch.equal(steps[-1]["metrics", "randomised"] > 1, torch.zeros(16, dtype=torch.bool))
