"""Renderer: tables of geometry and materials, and memory of images."""

import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import warp as wp

from physics.camera.appearance import lamps, material, sky, textures
from physics.camera.kernels import NUMBERS, SIDE, TRAITS, Arguments, build_kernels, parts_on
from physics.camera.triangles import LEAF, Tree, build_tree, triangles_of
from physics.camera.view import KINDS, View
from physics.collision.geometry import HFIELD, MESH
from physics.model.model import Model
from physics.trace.kernel import lanes_on, start_warp
from physics.trace.launcher import Launcher

GIGA = 1e9
MOST = 2**31 - 1  # pixels of all images, which a kernel counts
Images = dict[str, torch.Tensor]  # [num_envs, height, width, channels] by kind
# Draw the images of the environments in which a mask [num_envs] holds, of all if there is none.
Draw = Callable[[torch.Tensor | None], None]


def blank_images(view: View, num_envs: int, device: torch.device) -> Images:
  """Return the images of a view before anything is drawn; MemoryError if the device has no room for them."""
  width, height, types = view.lens.width, view.lens.height, {k: KINDS[k] for k in KINDS if k in view.kinds}
  shapes = {kind: (num_envs, height, width, channels) for kind, (channels, _) in types.items()}
  dtypes = {kind: getattr(torch, dtype) for kind, (_, dtype) in types.items()}
  needed = sum(math.prod(shape) * dtypes[kind].itemsize for kind, shape in shapes.items())
  if needed > (total := memory_of(device)) or num_envs * width * height > MOST:
    raise MemoryError(
      f"camera {view.name!r}: {num_envs} images of {width} x {height} pixels need {needed / GIGA:.1f} GB, "
      f"and {device} has {total / GIGA:.1f} GB in all: take fewer or smaller ones"
    )
  return {kind: torch.zeros(shape, dtype=dtypes[kind], device=device) for kind, shape in shapes.items()}


def memory_of(device: torch.device) -> int:
  """Return the memory of a device [bytes]."""
  if torch.device(device).type == "cuda":
    return torch.cuda.mem_get_info(device)[1]
  return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else sys.maxsize


class Renderer:
  """The renderer of one view in all environments, from its scene [row, env] into images by kind."""

  def __init__(self, model: Model, view: View, num_envs: int, scene: torch.Tensor, threads: int) -> None:
    start_warp()
    self.images = blank_images(view, num_envs, scene.device)
    self._scene = scene[:, :num_envs].T
    lens, device = view.lens, scene.device
    across, words = -(-lens.width // SIDE), max(1, -(-len(view.geoms) // 32))
    tiles = across * -(-lens.height // SIDE)
    self._memory: dict[str, torch.Tensor] = {
      "due": torch.ones(num_envs, dtype=torch.int32, device=device),
      "scene": torch.zeros(num_envs, view.rows(model), device=device),
      "seen": torch.zeros(num_envs, tiles, words, dtype=torch.int32, device=device),
      **{name: torch.as_tensor(table, device=device) for name, table in _tables(model, view).items()},
      **self.images,
    }
    arguments, count = Arguments(), len(view.geoms)
    sizes = {"tiles": tiles, "tiles_across": across, "geoms": count, "words": words}
    sizes |= {"lights": len(view.lights) + 1, "rows": view.rows(model), "sky": sky(model)}
    sizes |= {name: getattr(view, name) for name in ("lights_row", "diffuse_row", "colors_row")}
    for name, value in {**vars(lens), **sizes}.items():
      setattr(arguments, name, value)
    for name, memory in self._memory.items():
      setattr(arguments, name, wp.from_torch(memory.view(-1)))
    launcher = Launcher(build_kernels(device.type, lanes_on(device.type)), device, num_envs, threads)
    widths = [tiles, tiles * parts_on(device.type)]
    self._launches = launcher.record([arguments], widths, [*self._memory.values()])

  def draw(self, mask: torch.Tensor | None = None) -> None:
    """Draw the scene where a mask [num_envs] holds, or everywhere."""
    due = self._memory["due"]
    if mask is None:
      due.fill_(1)
    else:
      due.copy_(mask)
    self._memory["scene"].copy_(self._scene)
    self._launches.run()


def _tables(model: Model, view: View) -> dict[str, Any]:
  """Return the constants of the geoms, and the trees of their triangles."""
  trees: dict[tuple[int, int], tuple[Tree, int, int]] = {}
  boxes = leaves = 0
  numbers = np.zeros((len(view.geoms), len(NUMBERS)), np.int32)
  traits = np.zeros((len(view.geoms), len(TRAITS)), np.float32)
  for row, geom in enumerate(view.geoms):
    kind = int(model.geom_type[geom])
    texture, surface = material(model, geom)
    numbers[row], traits[row, 4:] = (kind, geom, 0, 0, 0, texture), surface
    if kind not in (MESH, HFIELD):
      continue
    key = kind, int(model.geom_dataid[geom])
    if key not in trees:
      tree = build_tree(triangles_of(model, geom))
      trees[key] = tree, boxes, leaves
      boxes, leaves = boxes + len(tree.boxes), leaves + tree.leaves
    tree, first_box, first_leaf = trees[key]
    numbers[row, 2:5] = tree.leaves, first_box, first_leaf * LEAF
    center, radius = tree.bound
    traits[row, :4] = *center, radius
  built = [tree for tree, *_ in trees.values()]
  return {
    **textures(model),
    "lamps": lamps(model, view.lights),
    "numbers": numbers,
    "traits": traits,
    "boxes": np.concatenate([np.zeros((1, 6)), *(tree.boxes for tree in built)])[1:].astype(np.float32),
    "triangles": np.concatenate([np.zeros((1, 9)), *(t.triangles for t in built)])[1:].astype(np.float32),
  }
