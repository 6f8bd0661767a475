"""Engines beside `Simulation`, with its interface: MuJoCo C, also on a robot's own file, and the traced
program run by NumPy."""

from physics.engines.mujoco_engine import MujocoSimulation
from physics.engines.numpy_engine import NumpySimulation
from physics.engines.own_file import OwnFileSimulation

__all__ = ["MujocoSimulation", "NumpySimulation", "OwnFileSimulation"]
