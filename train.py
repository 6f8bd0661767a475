"""Train a policy: `python train.py [key=value ...]`; `python train.py --help` prints every key."""

import sys
from datetime import datetime
from pathlib import Path

import tasks
from gpurobot import checkpoint, cli, config, distributed
from gpurobot.log import Log
from gpurobot.ppo import Learner
from gpurobot.random import Random


def main(argv: list[str]) -> None:
  """Wire task and trainer, then iterate until a limit is reached or a signal asks for an end."""
  world = distributed.start()
  settings, task = cli.parse(argv + world.same(checkpoint.words(world.recall())), tasks.load, world)
  device, num_envs = world.device(settings.device), config.share(settings, world.size)
  world.use(device, settings.threads)
  random = Random(settings.seed, num_envs, world.rank * num_envs, device)
  try:
    env = task.Task(settings.env, num_envs, device, random=random, training=True)
    learner = Learner(env, settings, world)
    seconds = checkpoint.restore(settings, learner)
  except ValueError as error:  # a mistake in task, robot, settings or checkpoint
    cli.fail(str(error), world)

  name = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{settings.seed}"
  folder = Path(world.same(settings.run_dir or f"runs/{Path(settings.task).stem}/{name}"))
  world.remember(str(folder))
  interrupt, saver = cli.Interrupt(), checkpoint.Saver(settings, learner, folder)
  log = Log(settings, learner, folder, seconds)
  while True:
    end, due = world.agree(log.finished or interrupt.requested, saver.due)
    if end or due:
      saver.save(log.seconds)
    if end:
      break
    learner.collect()
    learner.update()
    log.step()
  log.close()
  world.close()


if __name__ == "__main__":
  main(sys.argv[1:])
