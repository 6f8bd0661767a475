"""The machine under a training: ranks, CUDA graphs, torch's compiler, threads, clocks, memory.

Nothing here knows what is learned. `distributed.py` alone knows of other ranks, and does nothing where
there are none.
"""
