"""The learner: PPO, its network, rollout, optimiser, moments and random numbers.

It knows tensors, and of environments what `env.py` says. It imports no task, no physics and no program; what
it says of a training, `gpurobot/run` writes down.
"""
