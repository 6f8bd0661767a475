"""Kernels of a renderer: C++ written by hand, in which a value has as many lanes as in traced programs."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from physics.camera.appearance import DIRECTIONAL, FLAT, SPOT
from physics.camera.triangles import LEAF
from physics.camera.view import AXES, GEOMS, TANGENT
from physics.collision.geometry import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, PLANE, SPHERE
from physics.trace.kernel import block_on, start_warp
from physics.trace.preamble import preamble

SIDE = 8  # pixels of a tile's side
NUMBERS = ("KIND", "NUMBER", "LEAVES", "FIRST_BOX", "FIRST_TRIANGLE", "TEXTURE")  # of a geom
TRAITS = (  # of a geom: the sphere about its triangles, and its material
  *("CENTER_X", "CENTER_Y", "CENTER_Z", "RADIUS"),
  *("EMISSION", "SPECULAR", "SHININESS", "REPEAT_X", "REPEAT_Y", "UNIFORM"),
)
TEXTURE_NUMBERS = 5  # of a texture: where it begins, width, height, number of copies, kind
LAMP = {
  "LAMP_KIND": 1,
  "CASTS": 1,
  "CUTOFF": 1,
  "EXPONENT": 1,
  "ATTENUATION": 3,
  "AMBIENT": 3,
  "SPECULAR_LIGHT": 3,
}
CPU_FLAGS = "-march=native -ffp-contract=fast"
NAMES = {
  "PLANE": PLANE,
  "HFIELD": HFIELD,
  "SPHERE": SPHERE,
  "CAPSULE": CAPSULE,
  "ELLIPSOID": ELLIPSOID,
  "CYLINDER": CYLINDER,
  "BOX": BOX,
  "MESH": MESH,
  "TANGENT": TANGENT,
  "AXES": AXES,
  "GEOMS": GEOMS,
  "LEAF": LEAF,
  "SIDE": SIDE,
  **{name: i for names in (NUMBERS, TRAITS) for i, name in enumerate(names)},
  "NUMBERS": len(NUMBERS),
  "TRAITS": len(TRAITS),
  **dict(zip(LAMP, np.cumsum([0, *LAMP.values()]).tolist(), strict=False)),
  "LAMP_NUMBERS": sum(LAMP.values()),
  "TEXTURE_NUMBERS": TEXTURE_NUMBERS,
  "SPOT": SPOT,
  "DIRECTIONAL": DIRECTIONAL,
  "FLAT": FLAT,
}


# Arguments of every kernel of a renderer; images that nobody asked for have no memory.
FIELDS: dict[str, Any] = {
  "width": wp.int32,  # of an image [pixels]
  "height": wp.int32,
  "tiles": wp.int32,  # of an image
  "tiles_across": wp.int32,
  "geoms": wp.int32,
  "words": wp.int32,  # of 32 bits, one for each geom
  "rows": wp.int32,  # of the scene
  "lights": wp.int32,
  "lights_row": wp.int32,  # first row of positions and directions of lights in the scene
  "diffuse_row": wp.int32,  # first row of their colours
  "colors_row": wp.int32,  # first row of the colours of the model's geoms
  "sky": wp.int32,  # a texture, -1: black
  "across": wp.float32,  # a column of pixels, by the distance at which the image is 2 tangents high
  "left": wp.float32,  # the left edge of the image, likewise
  "down": wp.float32,  # a row of pixels, negative
  "top": wp.float32,  # the upper edge
  "near": wp.float32,  # [m] the depths that are drawn
  "far": wp.float32,
  "due": wp.array(dtype=wp.int32),  # [num_envs] 0: the images stay as they are
  "scene": wp.array(dtype=wp.float32),  # [num_envs, rows]
  "numbers": wp.array(dtype=wp.int32),  # [geoms, NUMBERS]
  "traits": wp.array(dtype=wp.float32),  # [geoms, TRAITS]
  "boxes": wp.array(dtype=wp.float32),  # [n, 6] of all trees
  "triangles": wp.array(dtype=wp.float32),  # [n, 9] of all trees
  "lamps": wp.array(dtype=wp.float32),  # [lights, LAMP_NUMBERS]
  "textures": wp.array(dtype=wp.int32),  # [n, TEXTURE_NUMBERS]
  "texels": wp.array(dtype=wp.uint8),  # of all textures
  "seen": wp.array(dtype=wp.int32),  # [num_envs, tiles, words] bits: the geoms that a tile may show
  "depth": wp.array(dtype=wp.float32),  # [num_envs, height, width]
  "rgb": wp.array(dtype=wp.uint8),  # [num_envs, height, width, 3]
  "segmentation": wp.array(dtype=wp.int32),  # [num_envs, height, width]
  "normal": wp.array(dtype=wp.float32),  # [num_envs, height, width, 3]
}
Arguments: Any = wp.struct(type("Arguments", (), {"__annotations__": FIELDS, "__module__": __name__}))


def parts_on(device: str) -> int:
  """Return the number of threads that draw a tile on a device."""
  return SIDE * SIDE if device == "cuda" else 1


@lru_cache(maxsize=4)
def build_kernels(device: str, lanes: int) -> list[wp.Kernel]:
  """Return the kernels for "cpu" or "cuda": culling for each tile, and drawing for each part of a tile."""
  start_warp()
  files = {("rays", "cull"): 1, ("rays", "light", "draw"): parts_on(device)}
  return [_kernel(device, lanes, parts, text) for text, parts in files.items()]


def _kernel(device: str, lanes: int, parts: int, files: Sequence[str]) -> wp.Kernel:
  """Return a kernel of `parts` threads for each tile of each image."""
  names = {**NAMES, "PARTS": parts}
  text = [f"const int {key} = {value};" for key, value in names.items()]
  text += [
    "const int env = 0, world = item / (view.tiles * PARTS);",
    "if (!view.due.data[world]) return;",
    preamble(lanes),
  ]
  text += [Path(__file__).with_name(f"{part}.h").read_text(encoding="utf-8") for part in files]

  def body(item: int, view: Arguments) -> None: ...

  native = wp.func_native("\n".join(text))(body)

  def run(first: int, view: Arguments) -> None:
    native(wp.tid() + first, view)  # type: ignore[operator]

  options = {"enable_backward": False, "cpu_compiler_flags": CPU_FLAGS, "fast_math": True}
  if device == "cuda":
    return wp.kernel(
      run, module="unique", module_options=options, launch_bounds=block_on(device), grid_stride=False
    )
  return wp.kernel(run, module="unique", module_options=options)
