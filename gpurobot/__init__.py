"""Data-parallel PPO over TensorDict: the trainer.

Importing the package also registers the tasks with Gymnasium: `gymnasium.make("gpurobot/Ant-v0")`. It loads
none of the libraries, so that a program which needs none starts at once.
"""

import sys

from gpurobot import own_packages
from gpurobot.adapters import registration
from gpurobot.device import process

if sys.argv[:1] == ["-m"]:  # Python looks for the program to run, as in python -m gpurobot.play
  own_packages.prefer()
process.limit_spinning()
registration.register_on_import()
