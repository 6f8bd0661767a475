import pytest
import torch

from gpurobot.adapters.environments import Environments, logged
from gpurobot.learn.random import Random
from gpurobot.settings.config import ConfigError
from tasks import UnknownTask
from tests.gpurobot import toy
from tests.tasks import shaken_cartpole


def make(task, *, training=False, **settings):
  return Environments(task, 4, "cpu", training, settings)


def play(envs, steps):
  action = torch.linspace(-1, 1, 4 * envs.task.num_actions).view(4, -1)
  return torch.stack([envs.step(action)["obs", "policy"] for _ in range(steps)])


def test_a_seed_makes_them_what_they_would_be_if_made_with_it():
  envs = make(toy.__file__)
  play(envs, 5)
  built = toy.Task(toy.Config(), 4, random=Random(5, 4), training=False)
  assert torch.equal(envs.reset(5)["policy"], built.reset()["policy"])
  after, expected = (env.step(torch.ones(4, 2))["obs", "policy"] for env in (envs, built))
  assert torch.equal(after, expected)


def test_a_seed_forgets_levels_masses_delays_and_timers():
  """Episodes of 5 steps reach other levels, poles and kicks; a seed brings the first ones back."""
  envs = make(shaken_cartpole.__name__, training=True, episode_steps=5, kick_seconds_max=0.5)
  first = envs.reset(3)["policy"]
  steps = play(envs, 40)
  assert float(envs.task.level.max()) > 0
  assert not torch.equal(envs.reset()["policy"], first)
  assert torch.equal(envs.reset(3)["policy"], first)
  assert torch.equal(play(envs, 40), steps)


def test_a_seed_draws_what_differs_for_good():
  envs = Environments("quadruped_rough", 32, "cpu", True, {"terrain_levels": 3, "terrain_size": 4.0})
  found = []
  for seed in (0, 1, 0, 1):
    envs.reset(seed)
    found.append((envs.task.kind.clone(), envs.task.sim.geom_friction.clone()))
  for kind in range(2):
    assert not torch.equal(found[0][kind], found[1][kind])
    assert torch.equal(found[0][kind], found[2][kind])
    assert torch.equal(found[1][kind], found[3][kind])


def test_training_has_noise_and_first_episodes_at_random_phases():
  apart = [make(shaken_cartpole.__name__, training=training) for training in (True, False)]
  for envs in apart:
    envs.reset(0)
  ages = [envs.task.episode_steps.tolist() for envs in apart]
  assert len(set(ages[0])) > 1
  assert ages[1] == [0] * 4


def test_what_diverged_has_terminated():
  envs = make(toy.__file__, finite_below=-2.0)
  envs.reset(0)
  step = envs.step(torch.zeros(4, 2))
  assert not step["valid"].any()
  assert step["terminated"].all()
  assert step["ended"].all()
  assert not step["truncated"].any()


def test_terms_metrics_and_success_are_told_by_name():
  envs = make(shaken_cartpole.__name__, episode_steps=1)
  envs.reset(0)
  told = logged(envs.step(torch.zeros(4, 1)))
  assert told["is_success"].all()
  assert {name for name in told if name.startswith("reward_")}
  assert all(value.shape == (4,) for value in told.values())


@pytest.mark.parametrize(
  ("arguments", "error", "message"),
  [
    (("hopper", 1, "cpu", False, {}), UnknownTask, "unknown task 'hopper'"),
    ((toy.__file__, 1, "cpu", False, {"episode_step": 3}), ConfigError, "the nearest is 'episode_steps'"),
    ((toy.__file__, 1, "tpu", False, {}), ConfigError, "device=tpu"),
  ],
)
def test_mistakes_are_named(arguments, error, message):
  with pytest.raises(error, match=message):
    Environments(*arguments)


def test_no_gradient_is_kept_from_step_to_step():
  envs = make(toy.__file__)
  envs.reset(0)
  assert not envs.step(torch.zeros(4, 2, requires_grad=True))["reward"].requires_grad
