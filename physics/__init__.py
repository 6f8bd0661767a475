"""The engine: MuJoCo's physics, traced per model into one fused Warp kernel for thousands of environments."""

from physics.load import load_model
from physics.model.model import Model
from physics.ray.raycaster import Frame, RayCaster
from physics.ray.scene import visible_geoms
from physics.simulation import Simulation
from physics.state.layout import DEFAULT_OUTPUTS, default_outputs
from physics.support import UnsupportedModel

__all__ = [
  "DEFAULT_OUTPUTS",
  "Frame",
  "Model",
  "RayCaster",
  "Simulation",
  "UnsupportedModel",
  "default_outputs",
  "load_model",
  "visible_geoms",
]
