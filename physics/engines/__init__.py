"""Engines beside `Simulation`, with its interface: MuJoCo C, the traced program run by NumPy."""

from physics.engines.mujoco_engine import MujocoSimulation
from physics.engines.numpy_engine import NumpySimulation
from physics.engines.own_file import OwnFileSimulation

__all__ = ["MujocoSimulation", "NumpySimulation", "OwnFileSimulation"]
