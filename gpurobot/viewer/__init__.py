"""Viewers of a trained policy: web page, MuJoCo's own window, video."""
