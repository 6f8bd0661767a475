"""The engine: MuJoCo's physics, traced per model into one fused Warp kernel for thousands of environments."""

from physics.layout import DEFAULT_OUTPUTS
from physics.model import Model, UnsupportedModel, load_model
from physics.simulation import Simulation

__all__ = ["DEFAULT_OUTPUTS", "Model", "Simulation", "UnsupportedModel", "load_model"]
