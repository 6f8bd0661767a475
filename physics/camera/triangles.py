"""Triangles of meshes and height fields, in trees of bounding boxes for rays."""

from dataclasses import dataclass

import numpy as np

from physics.collision.geometry import HFIELD
from physics.collision.hfield import HeightField
from physics.model.model import Floats, Ints, Model

LEAF = 8  # triangles of a leaf


@dataclass(frozen=True, eq=False)
class Tree:
  """A binary tree of bounding boxes about triangles, in the geom's frame.

  It is complete: box k holds the boxes 2k and 2k + 1, box 1 all, and the last `leaves` boxes hold `LEAF`
  triangles each. Box 0 is unused, and the padding of the last leaves has no area.
  """

  boxes: Floats  # [2 * leaves, 6] least corner, greatest corner [m]
  triangles: Floats  # [LEAF * leaves, 9] a corner, and two edges from it, anticlockwise from the front [m]

  @property
  def leaves(self) -> int:
    """Number of leaves, a power of two."""
    return len(self.boxes) // 2

  @property
  def bound(self) -> tuple[Floats, float]:
    """Centre [3] and radius [m] of a sphere about all triangles."""
    center = self.boxes[1].reshape(2, 3).mean(axis=0)
    first = self.triangles[:, :3]
    corners = np.concatenate([first, first + self.triangles[:, 3:6], first + self.triangles[:, 6:]])
    return center, float(np.linalg.norm(corners - center, axis=1).max())


def build_tree(corners: Floats) -> Tree:
  """Build the tree of triangles [n, 3, 3]: each box is cut in half across its longest side."""
  leaves = 1 << max(0, -(-len(corners) // LEAF) - 1).bit_length()
  points = np.repeat(corners[-1:, :1], 3, axis=1).repeat(LEAF * leaves - len(corners), axis=0)
  corners = np.concatenate([corners, points])
  corners = corners[_halved(corners.mean(axis=1), leaves)]
  groups = corners.reshape(leaves, 3 * LEAF, 3)
  levels = [np.concatenate([groups.min(axis=1), groups.max(axis=1)], axis=1)]
  while len(levels[-1]) > 1:
    pairs = levels[-1].reshape(-1, 2, 6)
    levels.append(np.concatenate([pairs[..., :3].min(axis=1), pairs[..., 3:].max(axis=1)], axis=1))
  boxes = np.concatenate([np.zeros((1, 6)), *reversed(levels)])
  first = corners[:, :1]
  return Tree(boxes, np.concatenate([first, corners[:, 1:] - first], axis=1).reshape(-1, 9))


def _halved(points: Floats, parts: int) -> Ints:
  """Return an order of points [n] in which each half, quarter, ... of them down to `parts` lies together."""
  order, count = np.arange(len(points))[None], 1  # [count, n / count]
  while count < parts:
    order = order.reshape(count, -1)
    inside = points[order]
    longest = np.argmax(inside.max(axis=1) - inside.min(axis=1), axis=1)
    along = np.take_along_axis(inside, longest[:, None, None], axis=2)[..., 0]
    order, count = np.take_along_axis(order, np.argsort(along, axis=1, kind="stable"), axis=1), 2 * count
  return order.ravel()


def triangles_of(model: Model, geom: int) -> Floats:
  """Return the triangles [n, 3, 3] [m] of a geom that is a mesh or a height field."""
  if model.geom_type[geom] == HFIELD:
    return _of_height_field(HeightField.of(model, geom))
  mj, mesh = model.mj, int(model.geom_dataid[geom])
  first, vertex = int(mj.mesh_faceadr[mesh]), int(mj.mesh_vertadr[mesh])
  faces = mj.mesh_face[first : first + int(mj.mesh_facenum[mesh])]
  return np.asarray(mj.mesh_vert, float)[vertex + faces]


def _of_height_field(field: HeightField) -> Floats:
  """Return the surface, the walls below its edges, and the underside."""
  x, y = (np.linspace(-half, half, n + 1) for half, n in zip(field.half, field.cells, strict=True))
  heights = np.reshape(field.heights, (field.rows, field.columns))
  top = np.stack([*np.broadcast_arrays(x[None, :], y[:, None], heights)], axis=-1)
  sheets = [top]
  for edge in (top[0], top[:, -1], top[-1, ::-1], top[::-1, 0]):  # round the field, walls face out
    foot = edge.copy()
    foot[:, 2] = field.base
    sheets.append(np.stack([foot, edge]))
  (left, right), (front, back) = ((-half, half) for half in field.half)
  under = [[[left, back, field.base], [right, back, field.base]]]
  under += [[[left, front, field.base], [right, front, field.base]]]
  return np.concatenate([_of_sheet(np.asarray(sheet)) for sheet in [*sheets, under]])


def _of_sheet(points: Floats) -> Floats:
  """Return the triangles [n, 3, 3] of a grid of points [rows, columns, 3].

  Each cell is cut from its first corner, as in MuJoCo. From their front, rows run to the left of columns.
  """
  a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
  return np.stack([np.stack([a, b, c], axis=-2), np.stack([a, c, d], axis=-2)]).reshape(-1, 3, 3)
