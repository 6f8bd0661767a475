"""Train a policy: `python train.py [key=value ...]`; `python train.py --help` prints every key."""

import sys

import tasks
from gpurobot import cli, config
from gpurobot.device import distributed
from gpurobot.learn.ppo import Learner
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint, folder
from gpurobot.run.log import Log


def main(argv: list[str]) -> int:
  """Train, and return the status to leave with; a mistake of the user's ends it with one line, status 2."""
  world = distributed.start()
  with cli.user_errors(argv, world):
    return train(argv, world)


def train(argv: list[str], world: distributed.World) -> int:
  """Wire task and trainer, then iterate until a limit is reached or a signal asks for an end.

  Returns 0, 128 + the signal's number, or 1 where the last checkpoint could not be saved.
  """
  settings, task = cli.parse(
    argv + world.broadcast_object(checkpoint.restart_arguments(world.recall())), tasks.load, world
  )
  device, num_envs = world.device(settings.device), config.share(settings, world.size)
  world.use(device, settings.threads)
  random = Random(settings.seed, num_envs, world.rank * num_envs, device)
  env = task.Task(settings.env, num_envs, device, random=random, training=True)
  learner = Learner(env, settings, world)
  place, lock = folder.claim(settings, world)
  seconds = checkpoint.restore(settings, learner)
  learner.warm_up()
  world.remember(str(place))
  interrupt, saver = cli.Interrupt(), checkpoint.Saver(settings, learner, place)
  with Log(settings, learner, place, seconds) as log:
    while True:
      end, due = world.any_rank(log.finished or interrupt.requested, saver.due)
      if end or due:
        log.warn(saver.save(log.seconds))
      if end:
        break
      learner.collect()
      learner.update()
      log.step()
    status = max(world.gather(max(interrupt.status, int(saver.failed))))
    log.close()
  world.close()
  lock.close()
  return status


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
