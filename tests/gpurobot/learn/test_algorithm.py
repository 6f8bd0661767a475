"""Another algorithm than PPO: a run asks for no more than the base and three methods."""

import pytest
import torch

from gpurobot.device.distributed import World
from gpurobot.learn.agent import Spaces, actor_critic
from gpurobot.learn.algorithm import LARGEST, Algorithm, replayed
from gpurobot.learn.collector import Collector
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import Rollout
from gpurobot.run import checkpoint
from gpurobot.run.csv_log import read
from gpurobot.run.training_run import TrainingRun
from gpurobot.settings.algorithms import PPOConfig, SACConfig
from gpurobot.settings.config import assign, defaults
from tests.gpurobot import toy, toy_pixels


class RandomSearch(Algorithm):
  """Moves the weights by noise, and back where the rewards have not become larger."""

  def __init__(self, env, config, world):
    super().__init__(env, config, world, config.ppo.horizon)
    self.agent = actor_critic(Spaces.of(env), config.ppo, env.device)
    self.rollout = Rollout(env, self.agent.network, config.ppo.horizon, 1, env.device)
    self.collector = Collector(env, self.agent, self.rollout, config, world, self.executor)
    self.clock = self.collector.clock
    self.best, self.weights = -float("inf"), self.agent.network.state_dict()

  def collect(self):
    self.rollout.restart()
    self.collector.collect(self._act)

  def _act(self, _sample, state, restart):
    policy, state = self.agent.act(self.collector.obs, state, restart)
    return policy.mode().squeeze(0), state

  def update(self):
    reward = float(self.rollout.samples["reward"].mean())
    if reward > self.best:
      self.best = reward
      self.weights = {name: value.clone() for name, value in self.agent.network.state_dict().items()}
    self.collector.random.advance()
    noise = self.collector.random.normal("search", (1,)).mean()
    self.agent.network.load_state_dict({name: w + 0.1 * noise for name, w in self.weights.items()})
    self.iteration += 1


def train(folder, **values) -> RandomSearch:
  config = assign(defaults(toy), {"run_dir": str(folder), "log_every": 1} | values)
  learner = RandomSearch(toy.Task(config.env, 64, random=Random(0, 64)), config, World())
  with TrainingRun(config, learner) as run:
    while not run.should_stop():
      learner.collect()
      learner.update()
      run.step()
  assert run.status == 0
  return learner


@pytest.mark.usefixtures("keep_signal_handlers")
def test_another_algorithm_trains_is_logged_saved_and_resumed(tmp_path):
  train(tmp_path, max_iterations=3)
  assert checkpoint.read(tmp_path)["learner"]["iteration"] == 3
  resumed = train(tmp_path, max_iterations=5, resume=str(tmp_path))
  assert resumed.steps == 5 * 64 * 8
  rows = list(read(tmp_path / "metrics.csv"))
  assert [float(row["iteration"]) for row in rows] == [1, 2, 3, 4, 5]
  assert all(float(row["reward/distance"]) < 0 for row in rows)


def make(module):
  config = assign(defaults(module), {"num_envs": 2})
  return module.Task(config.env, 2, torch.device("cpu"), random=Random(0, 2))


@pytest.mark.parametrize(
  ("settings", "count", "expected"),
  [
    (PPOConfig(), LARGEST, True),
    (PPOConfig(), LARGEST + 1, False),
    (SACConfig(), 256, True),
    (PPOConfig(loss="own.py:loss"), 256, False),
    (SACConfig(network="own.py:Network"), 256, False),
  ],
)
def test_small_steps_without_code_of_the_users_are_replayed(settings, count, expected):
  assert replayed(settings, make(toy), count) is expected


def test_steps_that_see_images_are_not_replayed():
  assert not replayed(PPOConfig(), make(toy_pixels), 256)
