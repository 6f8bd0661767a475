"""Facts of a compiled robot file: plain arrays under MuJoCo's names, and the pairs of geoms that can collide.

They are constants of every program that is traced. How a file is read is in `physics/load.py`; what differs
between environments is in `physics/vary`.
"""
