"""Rays: where they meet shapes and height fields, and kernels that cast many of them in each environment.

Sensors of distance, lidars and height scans use them. The rules are those of MuJoCo's `mj_ray`.
"""
