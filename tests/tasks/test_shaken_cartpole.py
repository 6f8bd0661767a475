"""The worked example: noise, past observations, kicks, poles of unknown mass, and a level that lasts."""

import math

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings import config
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


def poles(task):
  return task.sim.body_mass[:, task.pole].flatten()


def balance(task):
  """Return actions that keep the pole upright."""
  cart, angle = task.sim.qpos.unbind(1)
  speed, spin = task.sim.qvel.unbind(1)
  return (0.02 * cart + 0.04 * speed + 0.8 * angle + 0.15 * spin).unsqueeze(1)


def test_every_episode_draws_a_pole_from_the_robot_files(shaken):
  task = shaken(1024, episode_steps=3)
  drawn = []
  for _ in range(3):
    drawn.append(poles(task).clone())
    for _ in range(3):
      assert poles(task).equal(drawn[-1])
      task.step(torch.zeros(1024, 1))
  for masses in drawn:  # each between 0.7 and 1.3 kg: a draw from what was drawn would leave that range
    assert 0.7 <= masses.min() < 0.72
    assert 1.28 < masses.max() <= 1.3
  assert torch.corrcoef(torch.stack(drawn))[0, 1].abs() < 0.15
  ratio = task.sim.body_inertia[:, task.pole, 0].flatten() / poles(task)
  torch.testing.assert_close(ratio, ratio[:1].expand(1024))
  assert task.sim.body_mass[:, 1].unique().tolist() == [1.0]  # the cart


def test_a_heavier_pole_makes_the_cart_slower(shaken):
  task = shaken(pole_mass=0.9, start_position=0.0, start_velocity=0.0)
  task.step(torch.full((64, 1), 0.1))
  order = poles(task).argsort()
  assert (task.sim.qvel[order, 0].diff() <= 0).all()
  assert task.sim.qvel[:, 0].max() > 1.05 * task.sim.qvel[:, 0].min()


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


def test_without_training_there_is_no_noise_and_the_pole_is_the_robot_files(shaken):
  task = shaken(training=False)
  assert task.step(torch.zeros(64, 1))["obs", "policy"][:, -4:-2].equal(task.sim.qpos)
  assert poles(task).unique().tolist() == [1.0]


def test_it_is_evaluated_on_mujoco():
  task = in_mujoco.build(shaken_cartpole, 4, kick_speed=0.0)
  task.reset()
  for _ in range(30):
    assert not task.step(balance(task).float())["terminated"].any()


def test_it_trains():
  settings = config.assign(
    config.defaults(shaken_cartpole), {"num_envs": 32, "env.episode_steps": 20, "ppo.precision": "float32"}
  )
  env = shaken_cartpole.Task(settings.env, 32, random=Random(0, 32))
  learner = PPO(env, settings, World())
  before = parameters_to_vector(learner.network.parameters())
  for _ in range(2):
    learner.collect()
    learner.update()
  weights = parameters_to_vector(learner.network.parameters())
  assert weights.isfinite().all()
  assert not weights.equal(before)
