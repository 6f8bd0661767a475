"""Facts of a compiled robot file: plain arrays under MuJoCo's names, and the pairs of geoms that can collide.

They are constants of every traced program. `physics/load.py` reads a file; `physics/vary` has the numbers
that differ between environments.
"""
