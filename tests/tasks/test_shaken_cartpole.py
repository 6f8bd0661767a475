"""The worked example: noise, past observations, kicks, and a level that lasts."""

import math

import pytest
import torch

from tests.tasks import in_mujoco, shaken_cartpole
from tests.tasks.conftest import SHAKEN


@pytest.fixture
def shaken(make_task):
  """Return a function that builds the example for training, every episode at its start."""

  def make(num_envs=64, training=True, **settings):
    task = make_task(str(SHAKEN), num_envs, training=training, **settings)
    task.reset()
    task.episode_steps.zero_()
    return task

  return make


def balance(task):
  """Return actions that keep the pole upright."""
  cart, angle = task.sim.qpos.unbind(1)
  speed, spin = task.sim.qvel.unbind(1)
  return (0.02 * cart + 0.04 * speed + 0.8 * angle + 0.15 * spin).unsqueeze(1)


def test_survival_raises_the_level_and_failure_lowers_it(shaken):
  task = shaken(episode_steps=10)
  for _ in range(30):
    step = task.step(balance(task))
  assert step["success"].all()
  torch.testing.assert_close(task.level, torch.full((64,), 0.3))
  task.sim.qpos[:32, 0] = 3.5
  step = task.step(torch.zeros(64, 1))
  assert step["terminated"].tolist() == [True] * 32 + [False] * 32
  assert not step["success"].any()
  torch.testing.assert_close(task.level, torch.tensor([0.2] * 32 + [0.3] * 32))


def test_kicks_come_at_intervals_and_grow_with_the_level(shaken):
  task, calm = (shaken(256, kick_speed=speed) for speed in (2.0, 0.0))
  for either in (task, calm):
    either.level.copy_(torch.linspace(0.0, 1.0, 256))
  kicked = torch.zeros(256)
  for _ in range(120):  # two seconds: each environment is kicked once at least
    action = balance(task)
    calm.sim.set_state(task.sim.get_state())
    task.step(action), calm.step(action)
    kicked = torch.maximum(kicked, (task.sim.qvel - calm.sim.qvel)[:, 0].abs())
  assert kicked[0] == 0.0
  assert (kicked <= 2.0 * calm.level + 1e-5).all()
  assert torch.corrcoef(torch.stack([kicked, calm.level]))[0, 1] > 0.5


def test_the_policy_sees_noise_and_the_past_and_the_critic_the_truth(shaken):
  task = shaken(1024, delay_policy=0)
  seen, errors = [], []
  for _ in range(2):
    seen.append(task.step(torch.zeros(1024, 1))["obs"])
    errors.append(seen[-1]["policy"][:, -4:-2] - task.sim.qpos)
  before, error = errors
  assert torch.corrcoef(torch.stack([before[:, 0], error[:, 0]]))[0, 1].abs() < 0.15
  assert error.abs().max() <= 0.01 + 1e-6
  assert abs(error.std().item() - 0.01 / math.sqrt(3)) < 5e-4
  assert seen[-1]["policy"][:, -2:].equal(task.sim.qvel)
  assert seen[-1]["policy"][:, :-4].equal(seen[-2]["policy"][:, 4:])
  assert seen[-1]["critic"][:, :4].equal(torch.cat([task.sim.qpos, task.sim.qvel], 1))


def test_it_is_evaluated_on_mujoco():
  task = in_mujoco.build(shaken_cartpole, 4, kick_speed=0.0)
  task.reset()
  for _ in range(30):
    assert not task.step(balance(task).float())["terminated"].any()
