"""Data-parallel PPO over TensorDict: the trainer.

Importing the package also registers the tasks with Gymnasium: `gymnasium.make("gpurobot/Ant-v0")`.
"""

from gpurobot.adapters import registration
from gpurobot.device import process

process.limit_spinning()
registration.register()
