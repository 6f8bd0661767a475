"""Data-parallel PPO over TensorDict: the trainer, which knows no task and no physics engine."""

import os

# Torch's idle OpenMP threads would spin on the cores that physics needs. Read once, when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
