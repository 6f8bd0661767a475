"""Events come when their time has come, in each environment by itself."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from tasks.core.event import Event
from tests.tasks.sliding import Sliding, sliding

DT = 0.02  # [s]


def act():
  """Do nothing: what happens is the task's."""


def count(interval, steps, num_envs=4):
  """Return where the event happened [steps, num_envs]."""
  random = Random(0, num_envs)
  event = Event(act, interval, random.uniform, torch.zeros(num_envs))
  event.restart(torch.ones(num_envs, dtype=torch.bool))
  happened = []
  for _ in range(steps):
    random.advance()
    happened.append(event.due(DT))
  return torch.stack(happened)


@pytest.mark.parametrize(("seconds", "steps"), [(0.02, 1), (0.1, 5), (1.0, 50), (1.009, 50), (1.011, 51)])
def test_a_fixed_interval_is_kept_to_the_nearest_step(seconds, steps):
  happened = count((seconds, seconds), 10 * steps)[:, 0].nonzero()[:, 0] + 1
  assert happened.tolist()[:3] == [steps, 2 * steps, 3 * steps]


def test_intervals_lie_in_their_range_and_differ():
  happened = count((0.2, 1.0), 500, 1024)
  intervals = torch.cat([row.nonzero()[:, 0].diff() for row in happened.T]) * DT
  assert intervals.min() >= 0.2 - DT
  assert intervals.max() <= 1.0 + DT
  assert happened[100:].any(1).all()  # in some environment at every step: they are not in phase
  error = 0.8 / math.sqrt(12 * len(intervals))
  assert abs(intervals.mean().item() - 0.6) < 5 * error


def test_a_restart_draws_the_time_anew_where_it_is_asked_for():
  random = Random(0, 4)
  event = Event(act, (1.0, 2.0), random.uniform, torch.full((4,), 0.5))
  event.restart(torch.tensor([True, False, True, False]))
  assert event.left[1::2].tolist() == [0.5, 0.5]
  assert (event.left[::2] >= 1.0).all()


class Kicked(Sliding):
  """The block jumps by 1 m/s once in 0.06 s, which is three steps."""

  def setup(self):
    super().setup()
    self.every(0.06, 0.06, self.kick)

  def control(self):
    """Let nothing else move it."""

  def kick(self):
    qvel = self.sim.qvel.clone()
    qvel[:, self.qvel_of("x")] += 1.0
    return {"qvel": qvel}

  def observe(self):
    return {"policy": {"speed": self.sim.qvel[:, self.qvel_of("x")]}}


def test_an_event_comes_behind_the_reward_of_its_step_and_before_the_observation():
  task = sliding(kind=Kicked)
  rest = torch.zeros(4, 2)
  steps = [task.step(rest) for _ in range(4)]
  assert [step["reward_terms", "speed"][0].item() for step in steps] == [0.0, 0.0, 0.0, 2.0]
  assert [step["obs", "policy"][0].item() for step in steps] == [0.0, 0.0, 1.0, 1.0]


def test_an_event_waits_for_a_whole_interval_of_the_new_episode():
  task = sliding(kind=Kicked)
  rest = torch.zeros(4, 2)
  task.step(rest)
  task.sim.qpos[2, task.y] = 1.5
  speeds = torch.cat([task.step(rest)["obs", "policy"] for _ in range(4)], dim=1)
  assert speeds[0].tolist() == [0.0, 1.0, 1.0, 0.0]
  assert speeds[2].tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 1.0)])
def test_an_interval_that_cannot_be_is_refused(low, high):
  class Wrong(Sliding):
    def setup(self):
      super().setup()
      self.every(low, high, act)

  with pytest.raises(ValueError, match=f"'act' happens every {low:g} to {high:g} s: write 0 < low <= high"):
    sliding(kind=Wrong)


def test_two_events_of_one_name_are_refused():
  class Twice(Kicked):
    def setup(self):
      super().setup()
      self.every(1.0, 2.0, self.kick)

  with pytest.raises(ValueError, match="two events 'kick'"):
    sliding(kind=Twice)


def test_an_unknown_name_in_an_event_is_refused():
  class Misspelt(Kicked):
    def kick(self):
      return {"qvell": self.sim.qvel}

  with pytest.raises(ValueError, match=r"kick\(\) names 'qvell'.*nearest: 'qvel'"):
    sliding(kind=Misspelt).step(torch.zeros(4, 2))


def test_an_event_that_writes_in_place_is_refused_as_that_is_everywhere():
  class Everywhere(Kicked):
    def kick(self):
      self.sim.qvel[:, self.qvel_of("x")] += 1.0
      return {}

  with pytest.raises(ValueError, match=r"^kick\(\) changes the simulation in place: let it work on a copy"):
    sliding(kind=Everywhere).step(torch.zeros(4, 2))

  class Counting(Kicked):
    def kick(self):
      self.travelled += 1.0
      return {}

  with pytest.raises(ValueError, match=r"^kick\(\) changes self\.travelled in place: let it work on a copy"):
    sliding(kind=Counting).step(torch.zeros(4, 2))
