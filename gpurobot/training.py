"""Loop of a training: environments and a learner of the settings, then collect, update and log."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from gpurobot.device import distributed, threads
from gpurobot.fusion.schedule import fuse
from gpurobot.learn import overlap
from gpurobot.learn.algorithm import Algorithm
from gpurobot.learn.distill import Distill
from gpurobot.learn.env import VecEnv
from gpurobot.learn.off_policy.sac import SAC
from gpurobot.learn.off_policy.td3 import TD3
from gpurobot.learn.overlap import OverlappedRollouts
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.learn.teacher import Teacher
from gpurobot.run import teachers
from gpurobot.run.training_run import TrainingRun
from gpurobot.settings import config
from gpurobot.shell import cli

LEARNERS: dict[config.AlgorithmName, type[PPO] | type[SAC] | type[TD3]] = {
  config.AlgorithmName.ppo: PPO,
  config.AlgorithmName.sac: SAC,
  config.AlgorithmName.td3: TD3,
}


def make_learner(
  env: VecEnv, settings: config.TrainConfig, world: distributed.World, taught_by: Sequence[Teacher] = ()
) -> Algorithm:
  """Return the learner that the settings name; `taught_by` are the teachers of a distillation."""
  if settings.algorithm is config.AlgorithmName.distill:
    return Distill(env, settings, world, taught_by)
  if settings.overlap:
    return PPO(env, settings, world, OverlappedRollouts)
  return LEARNERS[settings.algorithm](env, settings, world)


def fit(
  settings: config.TrainConfig,
  task: ModuleType,
  world: distributed.World,
  callback: Callable[[Algorithm, Mapping[str, float]], object] = lambda _learner, _row: None,
) -> TrainingRun:
  """Build the task and the learner, then iterate until a limit is reached or a signal requests a stop.

  `callback` gets the learner and the last row of the log after each iteration. If it returns False, training
  stops.
  """
  world.require_same(cli.identity(settings, task))
  settings.run_dir = settings.run_dir and str(
    Path(settings.run_dir).absolute()
  )  # a task may leave this folder
  local_envs, device = config.local_envs(settings, world.size), world.device(settings.device)
  sim_device = world.device(settings.sim_device or settings.device)
  world.use(device, settings.threads)
  random = Random(settings.seed, local_envs, world.rank * local_envs, sim_device)
  taught_by = teachers.load(settings, task, local_envs, device)  # before the environments: mistakes end it
  with threads.use(overlap.shared_threads(settings, sim_device, device)[0]):
    env = task.Task(settings.env, local_envs, sim_device, random=random, training=True)
  learner = make_learner(env, settings, world, taught_by)
  if settings.compile is config.Switch.auto:
    fuse(learner.collector.taped, local_envs)
  with TrainingRun(settings, learner) as run:
    while not run.should_stop():
      learner.collect()
      learner.update()
      run.step()
      if callback(learner, run.row) is False:
        run.stop()
  return run
