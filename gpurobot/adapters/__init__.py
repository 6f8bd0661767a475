"""The tasks as environments of other libraries: Gymnasium, Stable-Baselines3, TorchRL, rl_games, rsl_rl.

The other direction, Gymnasium's own environments for a policy of this package, is
`gpurobot/deploy/gymnasium_env.py`.
"""
