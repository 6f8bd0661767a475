"""Speed of SAC, compared with Stable-Baselines3's on the same task, network, batch and update ratio.

Seconds are processor time, which other programs on the machine disturb least: use one thread. Ours is
measured in the precision that the processor is fast in, and in float32.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import mujoco
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

import tasks
from benchmarks.report import in_turn, line
from gpurobot.device.distributed import World
from gpurobot.learn.off_policy.sac import SAC
from gpurobot.learn.random import Random
from gpurobot.settings.config import TrainConfig, assign, defaults

TASK, ENVIRONMENT = "gym/HalfCheetah-v5", "HalfCheetah-v5"
NUM_ENVS, BATCH, RATIO = 1024, 256, 2  # gradient steps after each step of all environments
STEPS = 16  # steps of all environments in a round
ROUNDS = 5
SETTINGS = {
  "algorithm": "sac",
  "num_envs": NUM_ENVS,
  "sac.batch_size": BATCH,
  "sac.updates_per_step": RATIO,
  "sac.horizon": STEPS,
  "sac.learning_starts": STEPS,
  "sac.policy_delay": 1,
  "sac.critic": "scalar",
  "sac.activation": "relu",
  "sac.layer_norm": False,
  "sac.clipped_double_q": True,  # as the peer has it
}
PRECISIONS = {"gpurobot_scalar": "auto", "gpurobot_scalar_float32": "float32"}  # of ours, by name
CPU = torch.device("cpu")
Round = Callable[[], tuple[float, float]]  # trains, and returns the seconds of steps and of gradient steps


def own(precision: str) -> Round:
  """Return the round of our SAC."""
  module = tasks.load(TASK)
  config: TrainConfig = assign(defaults(module), SETTINGS | {"sac.precision": precision})
  env = module.Task(config.env, NUM_ENVS, CPU, random=Random(config.seed, NUM_ENVS), training=True)
  learner = SAC(env, config, World())

  def round_() -> tuple[float, float]:
    start = time.process_time()
    learner.collect()
    middle = time.process_time()
    learner.update()
    return middle - start, time.process_time() - middle

  return round_


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
  """Drop MuJoCo's warnings in the block: each environment's file has a deprecated attribute."""
  before = mujoco.get_mju_user_warning()
  mujoco.set_mju_user_warning(lambda _: None)
  try:
    yield
  finally:
    mujoco.set_mju_user_warning(before)


def peer() -> Round:
  """Return the round of Stable-Baselines3, over Gymnasium's environments of MuJoCo C."""
  workers = make_vec_env(ENVIRONMENT, NUM_ENVS)
  learner = stable_baselines3.SAC(
    "MlpPolicy",
    workers,
    batch_size=BATCH,
    gradient_steps=1,
    learning_starts=0,
    policy_kwargs={"net_arch": [256, 256], "activation_fn": nn.ReLU},
    device="cpu",
  )
  learner.learn(NUM_ENVS)

  def round_() -> tuple[float, float]:
    start = time.process_time()
    learner.gradient_steps = 0
    learner.learn(NUM_ENVS * STEPS, reset_num_timesteps=False)
    middle = time.process_time()
    learner.train(STEPS * RATIO, BATCH)
    return middle - start, time.process_time() - middle

  return round_


def run() -> None:
  """Print the speeds of all, in turn, and the ratios to the peer's."""
  with unwarned():
    rounds = {name: own(precision) for name, precision in PRECISIONS.items()} | {"stable_baselines3": peer()}
  times = in_turn(rounds, ROUNDS)  # the first one fills the buffer
  for name in rounds:
    steps, updates = (statistics.median(row[name][part] for row in times) for part in range(2))
    line(f"off_policy.{name}.collected_steps_per_second", STEPS * NUM_ENVS / steps)
    line(f"off_policy.{name}.steps_per_second", STEPS * NUM_ENVS / (steps + updates))
    line(f"off_policy.{name}.gradient_steps_per_second", STEPS * RATIO / updates)
  _print_ratios(times)


def _print_ratios(times: list[dict[str, tuple[float, float]]]) -> None:
  """Print how many times as fast as the peer we are: medians over the rounds."""
  measures: dict[str, Callable[[tuple[float, float]], float]] = {
    "collected_steps": lambda seconds: seconds[0],
    "steps": sum,
    "gradient_steps": lambda seconds: seconds[1],
  }
  for name in PRECISIONS:
    suffix = f"{name}_ratio".removeprefix("gpurobot_")
    for what, seconds in measures.items():
      ratio = statistics.median(seconds(row["stable_baselines3"]) / seconds(row[name]) for row in times)
      line(f"off_policy.{what}_{suffix}", ratio)
