"""Cartpole's numbers by hand."""

import math

import pytest
import torch

from physics.parity import MujocoSimulation


@pytest.fixture
def task(make_task):
  return make_task("cartpole", num_envs=3)


def place(task, qpos, qvel):
  task.sim.qpos.copy_(torch.tensor(qpos))
  task.sim.qvel.copy_(torch.tensor(qvel))


def test_the_robot_is_the_published_one(task):
  model = task.model
  masses = dict(zip(model.body_names, model.body_mass, strict=True))
  assert masses == {"world": 0.0, "cart": 1.0, "pole": 1.0}
  assert model.actuator_gear[0, 0] == 400.0
  assert model.actuator_ctrlrange[0].tolist() == [-1.0, 1.0]
  assert task.dt == pytest.approx(1 / 60)
  assert task.max_episode_steps == 500


def test_the_observation_is_position_and_velocity(task):
  place(task, [[1.0, 0.5]] * 3, [[-2.0, 3.0]] * 3)
  blocks = task.observe()["policy"]
  assert {name: block.tolist() for name, block in blocks.items()} == {
    "position": [[1.0, 0.5]] * 3,
    "velocity": [[-2.0, 3.0]] * 3,
  }


def test_reward_and_failure_by_hand(task):
  place(task, [[0.0, 0.5], [3.01, 0.0], [0.0, -1.6]], [[-2.0, 4.0], [0.0, 0.0], [1.0, 1.0]])
  total = sum(task.reward_weights[name] * term for name, term in task.reward().items())
  torch.testing.assert_close(total, torch.tensor([1.0 - 0.25 - 0.02 - 0.02, -2.0, -2.0]))
  assert task.terminated().tolist() == [False, True, True]


def test_episodes_start_within_the_published_offsets(make_task):
  task = make_task("cartpole", num_envs=64)
  task.reset()
  for view, limit in ((task.sim.qpos, 0.1), (task.sim.qvel, 0.25)):
    assert view.abs().max() <= limit
    assert view.max() > limit / 2
    assert view.min() < -limit / 2


def test_a_pole_at_rest_upright_pays_one_per_step(make_task):
  task = make_task("cartpole", start_position=0.0, start_velocity=0.0, episode_steps=20)
  task.reset()
  steps = [task.step(torch.zeros(8, 1)) for _ in range(20)]
  assert sum(step["reward"] for step in steps).tolist() == [20.0] * 8
  assert [bool(step["truncated"].all()) for step in steps] == [False] * 19 + [True]


def test_a_full_push_accelerates_the_cart_as_newton_says(task):
  """At rest and upright: (M + m) a + m l alpha = F on the rail, m l a + (I + m l^2) alpha = 0."""
  simulation = MujocoSimulation(task.model, 1)
  simulation.qpos.zero_()
  simulation.ctrl.fill_(1.0)
  simulation.forward()
  mass, length, inertia = 1.0, 0.47, (0.06**2 + 1.0**2) / 12
  acceleration = 400.0 / (2.0 - (mass * length) ** 2 / (inertia + mass * length**2))
  assert simulation.qacc[0, 0].item() == pytest.approx(acceleration, rel=1e-4)
  assert not math.isclose(acceleration, 200.0, rel_tol=0.1)  # the pole matters
