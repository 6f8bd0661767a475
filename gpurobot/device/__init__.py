"""Device layer: ranks, CUDA graphs, torch.compile, threads, timers, memory.

It is independent of the algorithm. Only `distributed.py` communicates between ranks; with a single rank its
collectives do nothing.
"""
