"""Cameras beside MuJoCo's renderer, and training with a camera beside training without one."""
