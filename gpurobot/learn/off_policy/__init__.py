"""Off-policy algorithms: SAC and TD3, what they share, and their draw of batches from the replay buffer."""
