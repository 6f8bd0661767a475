"""Data-parallel PPO over TensorDict: the trainer, which knows no task and no physics engine."""

from gpurobot import process

process.limit_spinning()
