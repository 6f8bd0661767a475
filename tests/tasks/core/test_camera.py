"""Cameras of tasks: when they see, what they keep, and how well."""

import pytest
import torch

import tasks
from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
from tasks.base import Defects

KINDS = ("depth", "segmentation")


class Seeing(tasks.load("cartpole").Task):
  """A cart and a camera in front of it."""

  defects = Defects()

  def setup(self):
    super().setup()
    self.eye = self.camera("world", 24, 16, KINDS, self.defects)
    self.eye.pos[:] = torch.tensor([0.0, -4.0, 0.5])
    self.eye.quat[:] = torch.tensor([0.5**0.5, 0.5**0.5, 0.0, 0.0])

  def symmetry(self):
    return {}

  def observe(self):
    groups = super().observe()
    return groups | {"policy": groups["policy"] | {"seen": self.eye.render()["depth"].flatten(1)}}


def make(training=True, **defects):
  Seeing.defects = Defects(**defects)
  return Seeing(tasks.load("cartpole").Config(), 3, random=Random(0, 3), training=training)


def push(task, steps):
  """Return what the camera shows at the start and after each step [steps + 1, num_envs, pixels]."""
  task.reset()
  task.episode_steps.zero_()
  shown = [task.eye.render()["depth"].flatten(1).clone()]
  for _ in range(steps):
    task.step(torch.full((3, 1), 0.7))
    shown.append(task.eye.render()["depth"].flatten(1).clone())
  return torch.stack(shown)


def test_a_camera_sees_every_step_what_the_observation_holds():
  task = make()
  task.reset()
  for _ in range(3):
    step = task.step(torch.full((3, 1), 0.7))
    assert step["obs", "policy"][:, -24 * 16 :].equal(task.eye.render()["depth"].flatten(1))
  assert task.eye.render()["segmentation"].dtype == torch.int32
  shown = push(task, 4)
  assert all(not shown[i].equal(shown[i + 1]) for i in range(4))


def test_a_camera_keeps_its_image_between_the_steps_of_its_rate():
  shown, every = push(make(rate=3), 6), push(make(), 6)
  assert [shown[i].equal(every[i - i % 3]) for i in range(7)] == [True] * 7


def test_a_late_camera_shows_what_it_saw_before():
  shown, every = push(make(latency=2), 5), push(make(), 5)
  assert [shown[i].equal(every[max(0, i - 2)]) for i in range(6)] == [True] * 6


def test_an_episode_starts_with_an_image_of_its_own():
  task = make(rate=5, latency=1, training=False)
  push(task, 2)
  task.sim.qpos[1, 0] = 1e3  # off the track
  before = task.eye.render()["depth"].clone()
  task.step(torch.zeros(3, 1))
  after = task.eye.render()["depth"]
  assert [after[env].equal(before[env]) for env in range(3)] == [True, False, True]


def test_pixels_are_lost_and_depths_are_coarse_in_training_alone():
  every = push(make(), 1)
  shown = push(make(dropout=0.25, quantum=0.5), 1)
  lost = shown == 0
  assert 0.15 < lost.float().mean() < 0.35
  assert not lost[0].equal(lost[1])
  torch.testing.assert_close(shown[~lost], torch.round(every[~lost] / 0.5) * 0.5)
  calm = push(make(training=False, dropout=0.25, quantum=0.5, latency=1), 1)
  assert not (calm == 0).any()


@pytest.mark.parametrize(
  ("words", "message"),
  [
    ({"rate": 0}, "rate=0"),
    ({"latency": -1}, "latency=-1"),
    ({"dropout": 1.5}, "dropout=1.5"),
    ({"quantum": -1.0}, "quantum=-1"),
  ],
)
def test_a_mistake_is_named(words, message):
  with pytest.raises(Exception, match=message):
    make(**words)


def test_mujoco_c_gives_a_task_the_same_images():
  real = make(training=False)
  simulation = MujocoSimulation(real.model, 3, real.outputs)
  other = Seeing(real.config, 3, random=Random(0, 3), training=False, simulation=simulation)
  for task in (real, other):
    task.reset()
    task.sim.qpos[:] = torch.tensor([0.2, 0.4])
    task.look(torch.zeros(3))
  here, there = (task.eye.render()["depth"] for task in (real, other))
  assert torch.isclose(here, there, rtol=1e-3).float().mean() > 0.99
