"""Ray casting: intersections with shapes and height fields, and kernels for many rays per environment.

Distance sensors, lidars and height scans use it. It follows the rules of MuJoCo's `mj_ray`.
"""
