"""Adapters of the tasks to other libraries: Gymnasium, Stable-Baselines3, TorchRL, rl_games, rsl_rl.

`gpurobot/deploy/gymnasium_env.py` is the reverse: Gymnasium's environments for a policy of gpurobot.
"""
