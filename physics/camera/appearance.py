"""The appearance of a model: colours, materials, textures and lights, as the file has them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.dynamics.camera_frame import TRACK, TRACKCOM
from physics.model.model import Floats, Model

SPOT, DIRECTIONAL, POINT = range(3)  # mjtLightType; image lights are ignored
FLAT, CUBE, SKYBOX = range(3)  # mjtTexture
ROLES = (1, 8)  # mjtTextureRole: textures of colour
GROUPS = 3  # geoms of groups 0 to 2 are drawn, as MuJoCo's renderer does by default
PLAIN = (0.5, 0.5, 0.5, 1.0)  # the colour of geoms that have none of their own
MATTE = {"emission": 0.0, "specular": 0.5, "shininess": 0.5}  # of geoms without a material
SHININESS = 128.0  # OpenGL's exponent of a highlight where the material's is 1


def geom_colors(model: Model) -> Floats:
  """Return the colours [ngeom, 4] of geoms: their own, or of their material."""
  mj, colors = model.mj, np.array(model.mj.geom_rgba, float)
  for geom, material in enumerate(mj.geom_matid):
    if material >= 0 and np.allclose(colors[geom], PLAIN):
      colors[geom] = mj.mat_rgba[material]
  return colors


def drawn_geoms(model: Model) -> list[int]:
  """Return the geoms that MuJoCo's renderer draws by default: of groups 0 to 2, not wholly transparent."""
  groups = model.mj.geom_group
  shown = (groups >= 0) & (groups < GROUPS) & (geom_colors(model)[:, 3] > 0)
  return np.flatnonzero(shown).tolist()


def lights_of(model: Model) -> list[int]:
  """Return the lights that shine, besides the camera's own."""
  return np.flatnonzero(model.mj.light_active.astype(bool) & (model.mj.light_type <= POINT)).tolist()


def light_start(model: Model, light: int) -> Floats:
  """Return position [m] and direction [6] of a light: in its body; from it, in world axes, if it tracks."""
  mj, mode = model.mj, model.mj.light_mode[light]
  position = {TRACK: mj.light_pos0, TRACKCOM: mj.light_poscom0}.get(mode, mj.light_pos)[light]
  direction = (mj.light_dir0 if mode in (TRACK, TRACKCOM) else mj.light_dir)[light]
  return np.concatenate([position, direction])


def lamps(model: Model, lights: list[int]) -> Floats:
  """Return the constants [lights + 1, LAMP_NUMBERS] of lights, the camera's own last, see `kernels.LAMP`."""
  mj, head = model.mj, model.mj.vis.headlight
  rows = []
  for light in lights:
    cosine = math.cos(math.radians(mj.light_cutoff[light]))
    rows.append(
      [
        *(mj.light_type[light], mj.light_castshadow[light], cosine, mj.light_exponent[light]),
        *(*mj.light_attenuation[light], *mj.light_ambient[light], *mj.light_specular[light]),
      ]
    )
  rows.append([DIRECTIONAL, 0, -1, 0, 1, 0, 0, *(head.ambient if head.active else (0, 0, 0))])
  rows[-1] += [*(head.specular if head.active else (0, 0, 0))]
  return np.array(rows, np.float32)


def diffuse(model: Model, lights: list[int]) -> Floats:
  """Return the colours [lights + 1, 3] of lights, the camera's own last."""
  head = model.mj.vis.headlight
  own = np.array(head.diffuse, float) * bool(head.active)
  return np.concatenate([model.mj.light_diffuse[lights].reshape(-1, 3), own[None]])


def material(model: Model, geom: int) -> tuple[int, list[float]]:
  """Return a geom's texture (-1: none), and emission, specular, exponent, repeats along x and y, uniform."""
  mj, index = model.mj, int(model.mj.geom_matid[geom])
  if index < 0:
    return -1, [MATTE["emission"], MATTE["specular"], MATTE["shininess"] * SHININESS, 1.0, 1.0, 0.0]
  textures = [int(mj.mat_texid[index, role]) for role in ROLES]
  surface = [float(getattr(mj, f"mat_{name}")[index]) for name in MATTE]
  surface[2] *= SHININESS
  return max(textures), [*surface, *mj.mat_texrepeat[index].tolist(), float(mj.mat_texuniform[index])]


def textures(model: Model) -> dict[str, Any]:
  """Return the tables of textures by name: numbers of each, and the pixels of all."""
  mj = model.mj
  table, texels = [], [np.zeros(0, np.uint8)]
  for i in range(mj.ntex):
    width, height, channels = (int(x[i]) for x in (mj.tex_width, mj.tex_height, mj.tex_nchannel))
    pixels = mj.tex_data[mj.tex_adr[i] : mj.tex_adr[i] + width * height * channels]
    faces = 1 if mj.tex_type[i] == FLAT else 6  # of a cube, which lie below each other
    image = pixels.reshape(faces, height // faces, width, channels)[
      ..., [0, 1, 2] if channels > 2 else [0] * 3
    ]
    copies = _ever_smaller(image)
    table.append([sum(map(len, texels)), width, height // faces, len(copies), mj.tex_type[i]])
    texels += [copy.ravel() for copy in copies]
  return {"textures": np.array(table, np.int32).reshape(-1, 5), "texels": np.concatenate(texels)}


def _ever_smaller(image: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
  """Return copies of an image [faces, height, width, 3], each half as wide and high as the one before."""
  copies = [image]
  while max(copies[-1].shape[1:3]) > 1:
    last = copies[-1].astype(float)
    for axis in (1, 2):
      half = max(last.shape[axis] // 2, 1)
      pairs = [np.take(last, np.minimum(2 * np.arange(half) + i, last.shape[axis] - 1), axis) for i in (0, 1)]
      last = (pairs[0] + pairs[1]) / 2
    copies.append(np.rint(last).astype(np.uint8))
  return copies


def sky(model: Model) -> int:
  """Return the texture of the sky, -1: there is none."""
  found = np.flatnonzero(model.mj.tex_type == SKYBOX).tolist()
  return found[0] if found else -1
