"""Engines beside `Simulation`, with its interface: MuJoCo C, and the traced program run by NumPy."""

from physics.engines.mujoco_engine import MujocoSimulation
from physics.engines.numpy_engine import NumpySimulation

__all__ = ["MujocoSimulation", "NumpySimulation"]
