"""Walking on rough ground: tiles of rising difficulty or a file's heights, a height scan and headings.

Terrain, height scan and curriculum follow legged_gym (Rudin et al. 2021, arXiv 2109.11978). Every robot has
one kind of terrain, starts in the middle of a tile and walks in a commanded direction. The distance that it
walks determines the level of its next tile. Unlike in legged_gym, an episode is truncated when the robot
leaves its tile: it advances to the next level at once, and never walks onto another kind of terrain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi, sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.core.errors import SettingError
from tasks.shared import gait
from tasks.shared.terrain import NAMES, FileGround, Ground, Terrain

# Of our robot dog.
FASTEST = 4.0  # assumed upper limit of the robot speed [m/s]
RAY_START = 1.0  # height above the trunk at which rays start [m]
SCANNED = 1.0  # largest height difference that the scan shows [m]


@dataclass
class Config(gait.Config):
  """Settings of a robot that can walk on rough ground."""

  terrain_kinds: list[str] = option(list(NAMES), "kinds of terrain, one for each column of tiles")
  terrain_levels: int = option(10, "number of rows of tiles, of rising difficulty", low=1)
  level: int | None = option(
    None, "level of every episode; null: the curriculum's, or a checkpoint's in its evaluation", low=0
  )
  terrain_size: float = option(6.0, "side of a tile, a multiple of two cells", "m", low=2)
  terrain_cell: float = option(0.1, "distance between points of the height field", "m", low=0.01)
  terrain_seed: int = option(0, "random seed of the terrain", low=0)
  scan_length: float = option(1.0, "length of the height scan, along the heading of the trunk", "m", low=0)
  scan_width: float = option(0.6, "width of the height scan", "m", low=0)
  scan_spacing: float = option(0.1, "distance between points of the height scan", "m", low=0.01)
  noise_scan: float = option(0.03, "largest noise on a height of the scan", "m", low=0)
  blind: bool = option(False, "policy without the height scan, which its teacher sees; see algorithm=distill")
  start_offset: float = option(
    0.3, "largest start offset from the middle of a tile along x and y", "m", low=0
  )
  heading_gain: float = option(1.0, "commanded yaw rate per heading error", "1/s", low=0)


@dataclass
class RoughConfig(Config):
  """Settings of a robot dog that walks on rough ground only."""

  command_sideways: float = option(0.3, "largest commanded sideways speed", "m/s", low=0)
  command_standing: float = option(
    0.02, "fraction of commands that ask the robot to stand still", low=0, high=1
  )
  command_seconds: float = option(
    20.0, "longest time between new commands; the shortest is half as long", "s", low=0.1
  )
  reward_vertical: float = option(
    -0.5, "weight of the penalty on the squared velocity along the trunk z axis", "s^2/m^2"
  )
  friction_min: float = option(0.5, "smallest friction coefficient in training", low=0)
  reward_tilt: float = option(-0.2, "weight of the penalty on the squared sine of the tilt")
  reward_slip: float = option(
    -0.03, "weight of the penalty on the squared sliding speed of feet in contact", "s^2/m^2"
  )
  reward_swing: float = option(
    -10.0, "weight of the penalty on the squared height error of swinging feet", "1/m^2"
  )


ON_ROUGH: dict[str, float] = {name: getattr(RoughConfig, name) for name in RoughConfig.__annotations__}
LENGTHS = ("terrain_size", "terrain_cell", "scan_length", "scan_width", "scan_spacing", "start_offset")
FLAT, ROUGH, STAIRS = "flat", "rough", "stairs"  # values of `terrain` that are no files
TILED = ("terrain_kinds", "terrain_levels", "level", "terrain_size", "terrain_seed")
# Settings without effect, by the ground or the ending of its file.
UNUSED: dict[str, tuple[str, ...]] = {
  FLAT: (*Config.__annotations__, "terrain_height"),
  ROUGH: ("terrain_height",),
  STAIRS: ("terrain_kinds", "terrain_height"),
  ".png": TILED,
  ".npz": (*TILED, "terrain_height", "terrain_cell"),
}
NEEDED = {".png": ("terrain_cell", "terrain_height"), ".npy": ("terrain_cell",)}  # of a file


class Task(gait.Task):
  """Walking task on uneven ground; where `ground` gives none, all is as on flat ground."""

  terrain: Ground  # only on uneven ground
  config: Any

  @classmethod
  def ground(cls, config: Any) -> Ground | None:
    """Return the uneven ground of the settings; None: it is flat."""
    return tiles(config, config.terrain_kinds)

  def setup(self) -> None:
    """Create the terrain, a kind of terrain for every robot, and the rays of the height scan."""
    ground = self.ground(self.config)
    self.uneven = ground is not None
    if ground is None:
      super().setup()
      self.hidden = {**self.hidden, "scan": "env.terrain=rough"}
      return
    self.terrain = ground.to(self.device)
    self.kinds = self.terrain.origins.shape[1] if self.terrain.tiled else 0
    self.kind = self.buffer(dtype=torch.int64, lasting=True)
    self.kind.copy_(self.kinds * self.random.uniform("kind of ground", ()))
    self.level = self.buffer(dtype=torch.int64, lasting=True)
    self.origin = self.buffer(3)  # middle of the robot's tile, or its start, on the ground [m]
    self.heading = self.buffer()  # commanded heading [rad]
    self.asked = self.buffer()  # distance commanded in this episode [m]
    self.below = self.buffer(len(self.feet))  # heights of the ground below the feet [m]
    super().setup()
    del self.commands.ranges["turn"]  # which follows from the heading
    # The fewest steps to the edge of the tile, or of the ground.
    steps = (self.terrain.clearance - self.config.start_offset) / (FASTEST * sqrt(ground.scale)) / self.dt
    self.least_between_truncations = max(1, min(self.max_episode_steps, int(steps)))
    self._set_up_scan()

  def _set_up_scan(self) -> None:
    """Create the rays of the height scan and its sensor."""
    config, self.ray_start = self.config, RAY_START * self.terrain.scale
    self.columns, self.rows = (
      1 + round(side / config.scan_spacing) for side in (config.scan_length, config.scan_width)
    )
    ahead, left = (
      [config.scan_spacing * (i - (count - 1) / 2) for i in range(count)]
      for count in (self.columns, self.rows)
    )
    grid = [(x, y, self.ray_start) for x in ahead for y in left]
    self.scan = self.rays(self.trunk, grid, (0, 0, -1), frame="yaw", geoms=["floor"])
    points = tuple(f"x={x:.3g} y={y:.3g}" for x, y, _ in grid)
    depth = f"depth of the ground below {self.trunk} at a place ahead (x) and to the left (y), minus home's"
    self.sensors = {**self.sensors, "scan": base.Sensor(points, "m", depth)}
    self.hidden = {**self.hidden, **({"scan": "env.blind=false"} if config.blind else {})}

  # ---- curriculum and commands ----

  def initial_state(self) -> dict[str, Tensor]:
    """Start near the middle of a tile of the next level, or at a level place, with a random heading."""
    start = super().initial_state()
    if not self.uneven:
      return start
    level = self.next_level()
    origin = self.terrain.origins[level, self.column()]
    x_y_yaw = self.random.uniform("place", (3,), -1.0, 1.0)
    yaw, none = pi * x_y_yaw[:, 2], torch.zeros_like(x_y_yaw[:, 2])
    qpos = start["qpos"]
    qpos[:, :3] += origin
    qpos[:, :2] += self.config.start_offset * x_y_yaw[:, :2]
    qpos[:, 3:7] = torch.stack([(yaw / 2).cos(), none, none, (yaw / 2).sin()], 1)
    heading = self.draw_heading()
    command = self.turned(start["command"], heading - yaw)
    return start | {"level": level, "origin": origin, "heading": heading, "command": command}

  def column(self) -> Tensor:
    """Return the column of the start positions [num_envs] int64: the robot's kind of ground, or any."""
    if self.terrain.tiled:
      return self.kind % self.kinds  # a checkpoint's may be of more kinds
    return (self.terrain.origins.shape[1] * self.random.uniform("start", ())).long()

  def next_level(self) -> Tensor:
    """Return the next level [num_envs] int64: one up after leaving the tile, one down for a short walk.

    A walk is short if it covers less than half of the commanded distance. After the last level, and outside
    of training, the next level is random, unless levels are held or the settings choose one.
    """
    levels = self.terrain.origins.shape[0]
    drawn = (levels * self.random.uniform("level", ())).long()
    if self.config.level is not None:
      return torch.full_like(drawn, self.config.level)
    if self.levels_held:
      return self.level
    if not self.training:
      return drawn
    walked = torch.hypot(*(self.sim.qpos[:, :2] - self.origin[:, :2]).unbind(1))
    has_left = self.has_left()
    level = self.level + has_left.long() - (~has_left & (walked < self.asked / 2)).long()
    return torch.where(level < levels, level.clamp(min=0), drawn)

  def has_left(self) -> Tensor:
    """Return which robots have left their tiles, or the ground of a file [num_envs] bool."""
    return self.terrain.has_left(self.sim.qpos[:, :2], self.origin)

  def new_command(self) -> dict[str, Tensor]:
    """Return new velocity commands [num_envs, 3], their age, and new headings [num_envs]."""
    drawn = super().new_command()
    if not self.uneven:
      return drawn
    heading = self.draw_heading()
    command = self.turned(drawn["command"], heading - self.yaw())
    return drawn | {"heading": heading, "command": command}

  def draw_heading(self) -> Tensor:
    """Return random headings [num_envs] [rad]."""
    return self.random.uniform("heading", (), -pi, pi)

  def turned(self, command: Tensor, off: Tensor) -> Tensor:
    """Return the command [num_envs, 3] with the yaw rate for a heading error `off` [num_envs] [rad].

    The yaw rate of a command to stand still is zero.
    """
    wrapped = torch.remainder(off + pi, 2 * pi) - pi
    most = self.config.command_turn
    turning = (self.config.heading_gain * wrapped).clamp(-most, most) * (command.abs().amax(1) > 0)
    return torch.cat([command[:, :2], turning.unsqueeze(1)], 1)

  def yaw(self) -> Tensor:
    """Return the yaw of the trunk [num_envs] [rad]."""
    w, x, y, z = self.sim.qpos[:, 3:7].unbind(1)
    return torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

  # ---- a step ----

  def update(self) -> None:
    """Set the commanded yaw rate from the heading; truncate the episode of robots that left their tiles."""
    if not self.uneven:
      super().update()
      return
    self.command.copy_(self.turned(self.command, self.heading - self.yaw()))
    self.asked += self.dt * torch.hypot(*self.command[:, :2].unbind(1))
    super().update()
    self.below.copy_(self.terrain.height(self.sim.site_xpos[:, self.soles, :2]))
    self.episode_steps.masked_fill_(self.has_left(), self.max_episode_steps)

  def lifted(self) -> Tensor:
    """Return the heights of the feet above the ground, minus those at home [num_envs, feet] [m]."""
    return super().lifted() - self.below if self.uneven else super().lifted()

  def rise(self) -> Tensor:
    """Return the target heights of swinging feet [num_envs, feet] [m]: above a step they are high at once."""
    return torch.full_like(self.below, self.config.swing_height) if self.uneven else super().rise()

  def success(self) -> Tensor | None:
    """Succeed if the robot has left its tile."""
    return self.has_left() if self.uneven and self.terrain.tiled else None

  def measure(self) -> dict[str, Tensor]:
    """Add the height scan: depth below the trunk, minus the depth of flat ground, clipped to +-1 m."""
    if not self.uneven:
      return super().measure()
    most = SCANNED * self.terrain.scale
    scan = (self.scan.cast() - self.ray_start - self.home[2]).clamp(-most, most)
    return super().measure() | {"scan": scan}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the groups; a blind robot's critic and teacher have the height scan, which its policy lacks."""
    groups = super().observe()
    if not self.uneven:
      return groups
    scan = groups["critic"]["scan"] = groups["critic"].pop("scan")  # after what no sensor measures
    return groups | ({"teacher": groups["policy"] | {"scan": scan}} if self.config.blind else {})

  def teacher_index(self, count: int) -> Tensor | None:
    """Return the kind of terrain of each robot [num_envs] int64 if there are as many teachers, else None."""
    return self.kind if self.uneven and count == self.kinds else None

  def metrics(self) -> dict[str, Tensor]:
    """Add the terrain level; where it is chosen, `level` keeps the training's, which is held."""
    if not (self.uneven and self.terrain.tiled):
      return super().metrics()
    chosen = self.config.level
    level = self.level if chosen is None else torch.full_like(self.level, chosen)
    return super().metrics() | {"terrain_level": level}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Add the mirror image of the height scan, if the policy has it."""
    if not self.uneven or self.config.blind:
      return super().symmetry()
    points = [i * self.rows + self.rows - 1 - j for i in range(self.columns) for j in range(self.rows)]
    return {**super().symmetry(), "scan": (points, [1] * len(points))}


def tiles(config: Config, kinds: list[str], scale: float = 1.0) -> Terrain:
  """Return tiles for a robot of a size, over our robot dog's; raise SettingError at a mistake."""
  if config.level is not None and config.level >= config.terrain_levels:
    raise SettingError(
      f"env.level={config.level} is none of env.terrain_levels={config.terrain_levels}: they start at 0"
    )
  return Terrain(
    kinds, config.terrain_levels, config.terrain_seed, config.terrain_size, config.terrain_cell, scale
  )


def ground(config: Any, scale: float) -> Ground | None:
  """Return the ground that `terrain` names, for a robot of a size, over our robot dog's; None: it is flat.

  Raises SettingError at a mistake.
  """
  if config.terrain == FLAT:
    return None
  if config.terrain in (ROUGH, STAIRS):
    stairs = [kind for kind in NAMES if kind.startswith(STAIRS)]
    return tiles(config, stairs if config.terrain == STAIRS else config.terrain_kinds, scale)
  height = config.terrain_height or 0.0
  return FileGround(config.terrain, config.terrain_cell, height, scale, config.start_offset)


def check(config: Any) -> None:
  """Raise SettingError if settings have no effect on the ground that `terrain` names, or one is missing."""
  kind, default = config.terrain, type(config)()
  kind = kind if kind in UNUSED else Path(kind).suffix.lower()
  for name in UNUSED.get(kind, (*TILED, "terrain_height")):
    if getattr(config, name) != getattr(default, name):
      raise SettingError(f"env.{name} has no effect with env.terrain={config.terrain}: leave it out")
  for name in NEEDED.get(kind, ()):
    if getattr(config, name) is None:
      raise SettingError(f"env.terrain={config.terrain} has no unit: write env.{name}=<metres> too")
