"""Rough terrain: a grid of tiles of rising difficulty, as heights and as an MJCF height field.

The kinds of terrain and their difficulty follow legged_gym (Rudin et al. 2021, arXiv 2109.11978), scaled for
a robot with legs of 0.3 m. Every tile is flat around its centre, where robots start, and has height zero
along its edge, so that all tiles fit together.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from tasks.core.names import hint

Range = tuple[float, float]  # from the easiest tile to the hardest

SLOPE: Range = (0.0, 0.4)  # rise over run
STEP: Range = (0.02, 0.16)  # height of a stair [m]
TREAD = 0.3  # depth of a stair [m]
STONE: Range = (0.8, 0.3)  # side of a stepping stone [m]
GAP: Range = (0.1, 0.3)  # width of the floor between stones; they fall to it over the width of a cell [m]
GAP_DEPTH: Range = (0.02, 0.25)  # [m]
STONE_HEIGHT: Range = (0.0, 0.04)  # largest height of a stone above or below the tile edge [m]
RUBBLE: Range = (0.01, 0.08)  # largest height of a rubble point above or below the tile edge [m]
RUBBLE_POINT = 0.2  # distance between rubble points [m]
OBSTACLE: Range = (0.02, 0.16)  # largest height of an obstacle above or below the tile edge [m]
OBSTACLE_SIDE: Range = (0.3, 1.2)  # shortest and longest side of an obstacle [m]
OBSTACLE_COUNT = 0.8  # obstacles per square metre [1/m^2]

PLATFORM = 0.8  # half the side of the flat start area around a tile's centre [m]
BORDER = 1.0  # width of the flat ground around all tiles [m]
BASE = 0.5  # thickness of the height field below its lowest point [m]


@dataclass(frozen=True)
class Tile:
  """Parameters of a tile: a square grid of points, one cell apart, and its difficulty."""

  points: int  # number of points along each side
  cell: float  # [m]
  difficulty: float  # 0 ... 1
  random: torch.Generator

  @property
  def ring(self) -> Tensor:
    """Chebyshev distance of each point from the centre [points, points] [cells]."""
    offset = (torch.arange(self.points) - self.points // 2).abs()
    return torch.maximum(offset[:, None], offset)

  def at(self, bounds: Range) -> float:
    """Return the value between two bounds at the difficulty of the tile."""
    return bounds[0] + self.difficulty * (bounds[1] - bounds[0])

  def cells(self, length: float) -> int:
    """Return a length [m] as a number of cells, at least one."""
    return max(1, round(length / self.cell))

  def draw(self, *shape: int) -> Tensor:
    """Return uniform random numbers [*shape] in [-1, 1)."""
    return 2 * torch.rand(*shape, generator=self.random) - 1

  def framed(self, heights: Tensor) -> Tensor:
    """Return heights [points, points] that are zero in the start area and along the edge."""
    ring = self.ring
    return heights * ((ring > self.cells(PLATFORM)) & (ring < self.points // 2))


def slope_up(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of a slope that rises from the start area to the edge."""
  run = (tile.ring - tile.cells(PLATFORM)).clamp(min=0)
  return tile.at(SLOPE) * tile.cell * (run - run.max())


def slope_down(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of a slope that falls from the start area to the edge."""
  return -slope_up(tile)


def stairs_up(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of stairs up to the edge; the riser of a stair is one cell wide."""
  run = (tile.ring - tile.cells(PLATFORM)).clamp(min=0)
  stairs = torch.ceil(run / tile.cells(TREAD))
  return tile.at(STEP) * (stairs - stairs.max())


def stairs_down(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of stairs down to the edge."""
  return -stairs_up(tile)


def stones(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of square stones at different levels, with gaps between them."""
  stone = tile.cells(tile.at(STONE))
  period = stone + tile.cells(tile.at(GAP)) + 2
  index = torch.arange(tile.points)
  top, count = index % period <= stone, tile.points // period + 1
  height = tile.at(STONE_HEIGHT) * tile.draw(count, count)
  stones = height.repeat_interleave(period, 0).repeat_interleave(period, 1)[: tile.points, : tile.points]
  return tile.framed(torch.where(top[:, None] & top, stones, -tile.at(GAP_DEPTH)))


def rubble(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of rubble: random at coarse points, interpolated between them."""
  count = (tile.points - 1) // tile.cells(RUBBLE_POINT) + 1
  heights = tile.at(RUBBLE) * tile.draw(1, 1, count, count)
  return tile.framed(interpolate(heights, (tile.points,) * 2, mode="bilinear", align_corners=True)[0, 0])


def obstacles(tile: Tile) -> Tensor:
  """Return heights [points, points] [m] of rectangular blocks and pits; later ones cover earlier ones."""
  position = tile.cell * torch.arange(tile.points)
  width = tile.cell * (tile.points - 1)
  count = round(OBSTACLE_COUNT * width**2)
  x, y, side_x, side_y, height = tile.draw(5, count, 1)
  shortest, longest = OBSTACLE_SIDE

  def within(centre: Tensor, side: Tensor) -> Tensor:
    """Return which points each obstacle covers along an axis [count, points] bool."""
    offset = (position - width / 2 * (1 + centre)).abs()
    return offset <= (shortest + (longest - shortest) * (1 + side) / 2) / 2

  covers = within(y, side_y).unsqueeze(2) & within(x, side_x).unsqueeze(1)  # [count, points, points]
  last = (covers * torch.arange(1, count + 1).view(-1, 1, 1)).amax(0)  # top obstacle, from 1; 0: none
  heights = torch.cat([torch.zeros(1), tile.at(OBSTACLE) * height[:, 0]])
  return tile.framed(heights[last])


KINDS: dict[str, Callable[[Tile], Tensor]] = {
  kind.__name__: kind for kind in (slope_up, slope_down, stairs_up, stairs_down, stones, rubble, obstacles)
}


class Terrain:
  """Grid of tiles centred at the origin: levels of rising difficulty along x, kinds of terrain along y.

  Args:
    kinds: names in KINDS, one for each column of tiles.
    levels: number of rows of tiles; the difficulty rises from 0 to 1.
    seed: random seed.
    size: side of a tile, a multiple of two cells [m].
    cell: distance between points of the height field [m].
    device: device of the tensors.
  """

  heights: Tensor  # [points along y, points along x], rounded to millimetres [m]
  origins: Tensor  # [levels, kinds, 3] start positions: the centre of each tile, on the ground [m]

  def __init__(
    self,
    kinds: Sequence[str],
    levels: int,
    seed: int = 0,
    size: float = 8.0,
    cell: float = 0.1,
    device: torch.device | str = "cpu",
  ) -> None:
    """Make the tiles; raise ValueError at an unknown kind or a size that is no multiple of two cells."""
    for kind in kinds:
      if kind not in KINDS:
        raise ValueError(f"terrain '{kind}' is unknown, {hint(kind, KINDS)}")
    self.cell, half = cell, round(size / cell / 2)
    fits = 2 * half * cell
    if abs(fits - size) > 1e-6:
      raise ValueError(f"tiles of {size:g} m are no multiple of two cells of {cell:g} m: write {fits:g} m")
    border = round(BORDER / cell)
    side = 2 * half  # of a tile, in cells
    heights = torch.zeros(side * len(kinds) + 2 * border + 1, side * levels + 2 * border + 1)
    for level in range(levels):
      for column, kind in enumerate(kinds):
        random = torch.Generator().manual_seed((seed * levels + level) * len(kinds) + column)
        tile = Tile(side + 1, cell, level / max(levels - 1, 1), random)
        first_y, first_x = border + side * column, border + side * level
        heights[first_y : first_y + side + 1, first_x : first_x + side + 1] = KINDS[kind](tile)
    self.heights = ((heights * 1000).round() / 1000).to(device)
    centres = [border + half + side * torch.arange(count, device=device) for count in (levels, len(kinds))]
    x, y = torch.meshgrid(*centres, indexing="ij")
    self.half = cell / 2 * (torch.tensor(self.heights.shape, device=device) - 1).flip(0)  # along x, y [m]
    flat = torch.stack([x, y], 2) * cell - self.half
    self.origins = torch.cat([flat, self.heights[y, x].unsqueeze(2)], 2)

  def scene(self, robot: Path | str, floor: str = "floor") -> str:
    """Return the MJCF text of a robot, a file or text, with the height field in place of its plane `floor`.

    The floor keeps its friction and gets contype 1; geoms that should touch planes only use another bit. The
    file must not refer to other files such as meshes, because relative paths would be lost.
    """
    tree = ET.fromstring(robot if isinstance(robot, str) else robot.read_text())
    plane = tree.find(f".//geom[@name='{floor}']")
    if plane is None:
      raise ValueError(f"the robot has no geom '{floor}' to make uneven: name its ground plane so")
    low, high = float(self.heights.min()), float(self.heights.max())
    x, y = self.half.tolist()
    plane.attrib |= {"type": "hfield", "hfield": "terrain", "pos": f"0 0 {low:.3f}", "contype": "1"}
    plane.attrib.pop("size", None)
    rows, columns = self.heights.shape
    size = f"{x:.6g} {y:.6g} {max(high - low, 0.001):.3f} {BASE:g}"
    # A file's rows run from the greatest y to the least.
    elevation = " ".join(f"{z:.3f}" for z in self.heights.flip(0).flatten().tolist())
    field = {"nrow": str(rows), "ncol": str(columns), "size": size, "elevation": elevation}
    ET.SubElement(ET.SubElement(tree, "asset"), "hfield", field, name="terrain")
    return ET.tostring(tree, encoding="unicode")

  def height(self, points: Tensor) -> Tensor:
    """Return the ground height [...] [m] at world points [..., 2] [m]; outside, the height of the edge.

    The diagonal from its first to its last corner divides a cell into two triangles, as in MuJoCo.
    """
    rows, columns = self.heights.shape
    grid = (points + self.half) / self.cell  # fractional column and row
    x, y = (grid[..., i].clamp(0, count - 1) for i, count in enumerate((columns, rows)))
    column, row = x.floor().clamp(max=columns - 2), y.floor().clamp(max=rows - 2)
    u, v = x - column, y - row
    first = row.long() * columns + column.long()
    corners = torch.stack([first, first + 1, first + columns, first + columns + 1])
    h00, h01, h10, h11 = self.heights.flatten()[corners]
    left, right = h00 + v * (h10 - h00) + u * (h11 - h10), h00 + u * (h01 - h00) + v * (h11 - h01)
    return torch.where(u < v, left, right)
