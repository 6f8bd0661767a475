import dataclasses
import shutil

import pytest

import tasks
from gpurobot.deploy import trained
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from gpurobot.settings import config
from gpurobot.viewer import offscreen
from gpurobot.viewer.player import Player
from physics.parity import MujocoSimulation
from tests.gpurobot import hopping_box, seeing_box
from tests.lacking import lacking

# MuJoCo C steps the boxes: no kernel has to be built.
WORDS = ("engine=mujoco", "env.episode_steps=40")


def write_run(module, place):
  """Write a run folder with an untrained policy of a task."""
  module = tasks.load(module.__file__)
  settings = dataclasses.replace(config.defaults(module), task=module.__file__, graphs=config.Switch.off)
  model = module.Task.make_model(settings.env)
  random = Random(0, settings.num_envs, 0, "cpu")
  simulation = MujocoSimulation(model, settings.num_envs, module.Task.outputs)
  env = module.Task(settings.env, settings.num_envs, random=random, simulation=simulation)
  learner = PPO(env, settings, World())
  content = {"config": config.to_dict(settings), "learner": learner.policy_dict()}
  checkpoint.write(place, content)
  return content


@pytest.fixture(scope="session")
def box_run(tmp_path_factory):
  """A run folder with an untrained policy, and one that a video was made of."""
  place = tmp_path_factory.mktemp("run")
  content = write_run(hopping_box, place)
  (place / "videos").mkdir()
  checkpoint.save(place / "videos" / "000003.pt", content)
  return place


@pytest.fixture(scope="session")
def seeing_run(tmp_path_factory):
  """A run folder with an untrained policy that sees images."""
  place = tmp_path_factory.mktemp("seeing")
  write_run(seeing_box, place)
  return place


def player_of(run, module, num_envs, against=None):
  """Return a player of a run folder's policy."""
  words = [f"checkpoint={run}", f"task={module.__file__}", WORDS[1]]
  settings = trained.parse(trained.PolicySettings(), words)
  return Player(trained.load(settings, num_envs, trained.Engine.mujoco), against)


@pytest.fixture(scope="session")
def make_player(box_run):
  """Return how players of the hopping box are made."""

  def make(num_envs=2, against=None):
    return player_of(box_run, hopping_box, num_envs, against)

  return make


@pytest.fixture
def seeing_player(seeing_run):
  """A player of a policy that sees images, in two environments."""
  return player_of(seeing_run, seeing_box, 2)


@pytest.fixture(scope="session")
def drawing():
  """The library that draws without a display, by its name in MUJOCO_GL."""
  try:
    return offscreen.backend()
  except config.ConfigError as error:
    lacking(str(error))


@pytest.fixture(scope="session")
def chromium():
  """The path of the browser."""
  return shutil.which("chromium") or lacking("needs Chromium: apt-get install chromium")
