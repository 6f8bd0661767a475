"""Light, ground and sky for a scene that people look at; the physics has no part in them."""

import os
from collections.abc import Sequence

import mujoco
import numpy as np
from mujoco import mjtBuiltin, mjtGeom, mjtLightType, mjtTexture, mjtTextureRole
from numpy.typing import NDArray

from gpurobot.viewer.framing import GROUND, corners, find_robot, subject
from gpurobot.viewer.marks import add_goal
from physics.load import read_spec

FLOOR = "gpurobot_floor"  # texture, material, body and geom
EARTH, TILE, HORIZON, ZENITH = (0.57, 0.62, 0.67), (0.67, 0.72, 0.77), (0.85, 0.9, 0.95), (0.45, 0.6, 0.8)
# Smallest ambient light, and largest light of camera and sun. Shadows have the first two of these:
# a dark robot stands out from them.
AMBIENT, HEADLIGHT, SUNLIGHT = 0.5, 0.35, 0.5
# Direction of light from far away in scenes without it, and on hills: it tells the sides of steps apart.
SUN = (0.3, 0.2, -1.0)
SUN_HEIGHT = 10.0  # [m]


def dressed(
  scene: os.PathLike[str] | str | mujoco.MjSpec, goals: Sequence[str | None] = ()
) -> mujoco.MjModel:
  """Return the model of a scene, with a light, a ground and a sky added where it lacks them.

  Ground without a material gets a pattern. Planes without one have no edge, as in the physics. `goals` are
  frames of goals, which become mocap bodies. Additions have the last indices and touch nothing, so states
  and sizes of the scene fit the model.
  """
  spec = read_spec(scene)
  _add_sky(spec)
  _add_pattern(spec)
  if not any(geom.type in GROUND for geom in spec.geoms):
    _add_ground(spec)
  for number, frame in enumerate(goals):
    add_goal(spec, f"gpurobot_goal_{number}", frame)
  headlight = spec.visual.headlight
  headlight.ambient = np.maximum(headlight.ambient, AMBIENT)
  headlight.diffuse = np.minimum(headlight.diffuse, HEADLIGHT)
  far = [light for light in spec.lights if light.type == mjtLightType.mjLIGHT_DIRECTIONAL]
  if not far:
    far = [spec.worldbody.add_light(type=mjtLightType.mjLIGHT_DIRECTIONAL, pos=(0, 0, SUN_HEIGHT), dir=SUN)]
  ground = [geom for geom in spec.geoms if geom.type in GROUND]
  for geom in ground:
    geom.castshadow = False  # its own shadow speckles it, above all at the edges of steps
  for light in far:
    light.diffuse = np.minimum(light.diffuse, SUNLIGHT)
    if any(geom.type == mjtGeom.mjGEOM_HFIELD for geom in ground):
      light.dir = SUN
  return spec.compile()


def sky() -> NDArray[np.uint8]:
  """Return the sky's colours as an image [height, 1, 3], from the zenith to the horizon and below."""
  height = np.linspace(0, 2, 64).clip(max=1)[:, None, None]
  return (255 * (height * HORIZON + (1 - height) * ZENITH)).astype(np.uint8)


def _add_sky(spec: mujoco.MjSpec) -> None:
  if not any(texture.type == mjtTexture.mjTEXTURE_SKYBOX for texture in spec.textures):
    sky = {"builtin": mjtBuiltin.mjBUILTIN_GRADIENT, "rgb1": HORIZON, "rgb2": ZENITH}
    spec.add_texture(name="gpurobot_sky", type=mjtTexture.mjTEXTURE_SKYBOX, width=256, height=256, **sky)


def _add_pattern(spec: mujoco.MjSpec) -> None:
  tiles = {"builtin": mjtBuiltin.mjBUILTIN_CHECKER, "rgb1": EARTH, "rgb2": TILE}
  spec.add_texture(name=FLOOR, type=mjtTexture.mjTEXTURE_2D, width=256, height=256, **tiles)
  material = spec.add_material(name=FLOOR, texuniform=True, texrepeat=(1, 1))
  material.textures[mjtTextureRole.mjTEXROLE_RGB] = FLOOR
  for geom in spec.geoms:
    if geom.type in GROUND and not geom.material:
      geom.material, geom.rgba = FLOOR, (1, 1, 1, 1)
      if geom.type == mjtGeom.mjGEOM_PLANE:
        geom.size[:2] = 0


def _add_ground(spec: mujoco.MjSpec) -> None:
  """Add a plane below all that is in the picture, lower by its height: a pole may swing down."""
  model = spec.copy().compile()
  data = mujoco.MjData(model)
  mujoco.mj_kinematics(model, data)
  heights = corners(model, data, subject(model, find_robot(model)))[:, 2]
  ground = spec.worldbody.add_body(name=FLOOR)
  ground.add_geom(
    name=FLOOR,
    type=mjtGeom.mjGEOM_PLANE,
    size=(0, 0, 1),
    pos=(0, 0, 2 * heights.min() - heights.max()),
    material=FLOOR,
    rgba=(1, 1, 1, 1),
    group=0,
    contype=0,
    conaffinity=0,
  )
