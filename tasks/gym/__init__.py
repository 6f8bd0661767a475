"""Gymnasium's MuJoCo environments, version 5: `half_cheetah.py` is the task `gym/HalfCheetah-v5`."""
