"""Rough terrain: tiles of rising difficulty, or the heights of a file, as an MJCF height field.

The kinds of terrain and their difficulty follow legged_gym (Rudin et al. 2021, arXiv 2109.11978), scaled for
a robot with legs of 0.3 m; lengths here are its. Every tile is flat around its centre, where robots start,
and has height zero along its edge, so that all tiles fit together.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate, max_pool2d, pad

from physics.robot.ground import on_heights, read_heights
from tasks.core.errors import SettingError
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
BORDER = 1.0  # width of the ground around all tiles, or around the heights of a file [m]
FOOTPRINT = 0.5  # half the side of a square that a robot covers [m]
LEVEL = 0.06  # largest height difference under a robot that starts on the heights of a file [m]


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


# Names alone, which the help of a program shows without torch.
NAMES = ("slope_up", "slope_down", "stairs_up", "stairs_down", "stones", "rubble", "obstacles")
OF_TILES = slope_up, slope_down, stairs_up, stairs_down, stones, rubble, obstacles
KINDS = dict(zip(NAMES, OF_TILES, strict=True))


class Ground:
  """Heights on a grid of points centred at the origin, and places where robots start."""

  tiled = True  # a robot leaves the tile in which it starts; False: it can leave the whole ground only
  heights: Tensor  # [points along y, points along x], rounded to millimetres [m]
  half: Tensor  # half the sides along x and y [2] [m]
  origins: Tensor  # [levels, columns, 3] start positions, on the ground [m]
  reach: Tensor  # half the sides of a tile, or of the ground without its border, along x and y [2] [m]
  clearance: float  # least distance from a start position to where a robot leaves [m]

  def __init__(self, heights: Tensor, cell: float, scale: float) -> None:
    """Take heights [points along y, points along x] and the distance of points [m].

    scale: size of the robot, over our robot dog's.
    """
    self.heights, self.cell, self.scale = (heights * 1000).round() / 1000, cell, scale
    self.half = cell / 2 * (torch.tensor(heights.shape) - 1).flip(0)

  def to(self, device: torch.device | str) -> "Ground":
    """Return this ground with its tensors on a device."""
    moved = copy.copy(self)
    vars(moved).update({n: value.to(device) for n, value in vars(self).items() if isinstance(value, Tensor)})
    return moved

  def has_left(self, place: Tensor, origin: Tensor) -> Tensor:
    """Return which robots at `place` [n, 2] have left their tile, or the ground; they began at `origin`."""
    middle = origin[:, :2] if self.tiled else 0.0
    return ((place - middle).abs() > self.reach).any(1)

  def scene(self, robot: Any) -> Any:
    """Return a robot, of a file, text or MjSpec, with this ground in place of its plane `floor`, an MjSpec.

    See `physics.robot.ground.on_heights`.
    """
    return on_heights(robot, self.heights.cpu().numpy(), self.half.tolist())

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


class Terrain(Ground):
  """Grid of tiles centred at the origin: levels of rising difficulty along x, kinds of terrain along y.

  Args:
    kinds: names in KINDS, one for each column of tiles.
    levels: number of rows of tiles; the difficulty rises from 0 to 1.
    seed: random seed.
    size: side of a tile, a multiple of two cells [m].
    cell: distance between points of the height field [m].
    scale: size of the robot, over our robot dog's.
  """

  def __init__(
    self,
    kinds: Sequence[str],
    levels: int,
    seed: int = 0,
    size: float = 8.0,
    cell: float = 0.1,
    scale: float = 1.0,
  ) -> None:
    """Make the tiles; raise SettingError at an unknown kind or a size that is no multiple of two cells."""
    for kind in kinds:
      if kind not in KINDS:
        raise SettingError(f"terrain '{kind}' is unknown, {hint(kind, KINDS)}")
    half = round(size / cell / 2)
    fits = 2 * half * cell
    if abs(fits - size) > 1e-6:
      raise SettingError(f"tiles of {size:g} m are no multiple of two cells of {cell:g} m: write {fits:g} m")
    border = round(BORDER / (cell / scale))
    side = 2 * half  # of a tile, in cells
    heights = torch.zeros(side * len(kinds) + 2 * border + 1, side * levels + 2 * border + 1)
    for level in range(levels):
      for column, kind in enumerate(kinds):
        random = torch.Generator().manual_seed((seed * levels + level) * len(kinds) + column)
        tile = Tile(side + 1, cell / scale, level / max(levels - 1, 1), random)
        first_y, first_x = border + side * column, border + side * level
        heights[first_y : first_y + side + 1, first_x : first_x + side + 1] = KINDS[kind](tile)
    super().__init__(scale * heights, cell, scale)
    centres = [border + half + side * torch.arange(count) for count in (levels, len(kinds))]
    x, y = torch.meshgrid(*centres, indexing="ij")
    flat = torch.stack([x, y], 2) * cell - self.half
    self.origins = torch.cat([flat, self.heights[y, x].unsqueeze(2)], 2)
    self.reach, self.clearance = torch.tensor([size / 2] * 2), size / 2


class FileGround(Ground):
  """Heights of a file, continued beyond its edge; robots start wherever they are level.

  Args:
    path: file of heights, see `physics.robot.ground.read_heights`.
    cell: distance between points [m]; a .npz file has its own.
    height: height of an image's white above its black [m].
    scale: size of the robot, over our robot dog's.
    offset: largest distance from a start position, along x and y, at which the ground is level too [m].
  """

  tiled = False

  def __init__(self, path: str, cell: float, height: float, scale: float, offset: float) -> None:
    """Read the heights; raise SettingError if this is impossible, or they are nowhere level."""
    try:
      read, cell = read_heights(path, cell, height)
    except ValueError as error:
      raise SettingError(str(error)) from error
    inner, border = torch.tensor(read, dtype=torch.float32)[None], max(1, round(BORDER * scale / cell))
    super().__init__(pad(inner, [border] * 4, mode="replicate")[0], cell, scale)
    self.reach = self.half - border * cell
    self.clearance = FOOTPRINT * scale + offset
    around = max(1, round(self.clearance / cell))
    if min(read.shape) <= 2 * around:
      sides = " x ".join(f"{2 * half:.3g}" for half in self.reach.tolist())
      raise SettingError(f"{path} has {sides} m: a robot to start on it needs {2 * self.clearance:.3g} m")
    highest, lowest = _highest(inner, 2 * around + 1)[0], -_highest(-inner, 2 * around + 1)[0]
    y, x = (highest - lowest <= LEVEL * scale).nonzero(as_tuple=True)
    if not len(x):
      raise SettingError(
        f"{path} is nowhere level enough for a start: within {LEVEL * scale:.2g} m over "
        f"{2 * self.clearance:.3g} m; write a smaller env.start_offset"
      )
    place = (torch.stack([x, y], 1) + border + around) * cell - self.half
    self.origins = torch.cat([place, highest[y, x].unsqueeze(1)], 1)[None]


def _highest(heights: Tensor, count: int) -> Tensor:
  """Return the greatest heights of all squares of `count` x `count` points [1, rows, columns] [m]."""
  return max_pool2d(max_pool2d(heights, (count, 1), 1), (1, count), 1)
