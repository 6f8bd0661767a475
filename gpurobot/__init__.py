"""Data-parallel PPO over TensorDict: the trainer, which knows no task and no physics engine.

The import also tells Gymnasium the names of the tasks: `gymnasium.make("gpurobot/Ant-v0")`.
"""

from gpurobot.adapters import registration
from gpurobot.device import process

process.limit_spinning()
registration.register()
