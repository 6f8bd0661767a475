"""Training of a policy: `python train.py [key=value ...]`; `python train.py --help` lists every key."""

import sys

from gpurobot.device import process

with process.collection_paused():  # what torch and the physics define stays
  import tasks
  import tasks.base  # which every task imports
  from gpurobot.device import distributed
  from gpurobot.run import checkpoint
  from gpurobot.shell import cli
  from gpurobot.training import fit


def main(argv: list[str]) -> int:
  """Train, and return the exit status; a user's mistake ends the program with one line and status 2."""
  with cli.user_errors(argv, distributed.World()):
    world = distributed.start()
  with cli.user_errors(argv, world):
    restart = world.broadcast_object(checkpoint.restart_arguments(world.recall()))
    status = train(argv + restart, world)
    world.close()
    return status


def train(argv: list[str], world: distributed.World) -> int:
  """Train with the settings of the arguments, and return the exit status.

  It is 0, 128 + the number of the signal that requested a stop, or 1 if the last checkpoint could not be
  saved.
  """
  settings, task = cli.parse(argv, tasks.load, world)
  return fit(settings, task, world).status


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
