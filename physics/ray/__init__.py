"""Ray casting: intersections with shapes and height fields, and kernels for many rays per environment.

Distance sensors, lidars and height scans use it. The rules are those of MuJoCo's `mj_ray`.
"""
