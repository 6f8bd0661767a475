"""Speed and memory of training: PPO and SAC beside Stable-Baselines3, and the parts of an iteration."""
