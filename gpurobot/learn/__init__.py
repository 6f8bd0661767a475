"""Learner: PPO and others, network, rollout, optimiser, normalisation and random numbers.

It works on tensors and on environments with the protocol of `env.py`. It imports no task, no physics and no
program; `gpurobot/run` writes its logs.
"""
