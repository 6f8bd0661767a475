"""Reference motions: clips from files and formulas, their checks, and a library of them on the device.

A `Clip()` is a motion of one robot, on the host. `Library()` resamples clips to the control rate and adds
velocities and body frames. Tasks that track or imitate motions, and the program `motion`, are built from it.
"""
