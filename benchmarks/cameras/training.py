"""Speed with a camera, compared with the same task without one: python -m benchmarks cameras.training.

Each pair has the same robot, number of environments, horizon, epochs and minibatches; the policy without a
camera observes directly what the other has to see. Both go on in turn, and the medians of steps per second
of a core count: they hardly depend on other programs. `environments` steps with random actions, `training`
collects rollouts and learns from them by PPO.
"""

import functools
import time
from collections.abc import Callable

import torch

import tasks
from benchmarks.report import compare
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.config import assign, defaults

PAIRS = {
  "cartpole_pixels": "cartpole",
  "cube_lift_depth": "cube_lift",
  "arm_reach_rgb": "arm_reach",
  "quadruped_rough_depth": "quadruped_rough",
}
SHAPE = ("num_envs", "ppo.horizon", "ppo.epochs", "ppo.minibatches", "ppo.recurrent", "ppo.recurrent_units")
ROUNDS, STEPS = 3, 32  # measurements of each, and steps of all environments in one


def make_learner(name: str, shape: dict[str, object]) -> PPO:
  """Return PPO on a task, with the settings of a shape in place of its own."""
  module = tasks.load(name)
  config = assign(defaults(module), shape)
  env = module.Task(config.env, config.num_envs, random=Random(0, config.num_envs))
  return PPO(env, config, World())


def shape_of(name: str) -> dict[str, object]:
  """Return the settings of a task that determine the amount of work in a training, except the camera."""
  config = defaults(tasks.load(name))
  return {key: getattr(config.ppo, key[4:]) if key.startswith("ppo.") else config.num_envs for key in SHAPE}


def act(one: PPO) -> int:
  """Step the environments with random actions; return the number of steps."""
  env = one.env
  for _ in range(STEPS):
    env.step(2 * torch.rand(env.num_envs, env.num_actions) - 1)
  return STEPS * env.num_envs


def train(one: PPO) -> int:
  """Train for an iteration; return the number of steps."""
  one.collect()
  one.update()
  return one.num_envs * one.ppo.horizon


def rate(work: Callable[[PPO], int], one: PPO) -> float:
  """Return the environment steps per second of a core."""
  start = time.process_time()
  return work(one) / (time.process_time() - start)


def run() -> None:
  """Measure and report."""
  for task, without_camera in PAIRS.items():
    names = {"core_steps": task, "core_steps_without": without_camera}
    learners = {column: make_learner(name, shape_of(task)) for column, name in names.items()}
    for what, work in (("environments", act), ("training", train)):
      runs = {column: functools.partial(rate, work, one) for column, one in learners.items()}
      compare(f"camera_cost.{task}.{what}", runs, ROUNDS, "share")
