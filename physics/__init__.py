"""The engine: MuJoCo's physics, traced per model into one fused Warp kernel for thousands of environments."""

from physics.camera.camera import Camera
from physics.load import load_model
from physics.model.identity import identity
from physics.model.model import Model
from physics.ray.raycaster import RayCaster, RayFrame
from physics.ray.scene import visible_geoms
from physics.simulation import Simulation
from physics.state.layout import DEFAULT_OUTPUTS, default_outputs
from physics.support import UnsupportedModel
from physics.urdf import read_urdf

__all__ = [
  "DEFAULT_OUTPUTS",
  "Camera",
  "Model",
  "RayCaster",
  "RayFrame",
  "Simulation",
  "UnsupportedModel",
  "default_outputs",
  "identity",
  "load_model",
  "read_urdf",
  "visible_geoms",
]
