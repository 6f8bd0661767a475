"""Quadruped on rough ground: a robot dog that sees the ground walks over slopes, stairs, stones and rubble.

Terrain, height scan and curriculum follow legged_gym (Rudin et al. 2021, arXiv 2109.11978): every robot has
its kind of ground, starts in the middle of a tile and walks in a commanded direction; how far it gets decides
how hard its next tile is. Unlike there, an episode's time is up when the robot leaves its tile: it gets to
the next level at once, and never onto ground that is not its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any

import torch
from torch import Tensor

from tasks import base, quadruped
from tasks.base import option
from tasks.shared.terrain import KINDS, Terrain

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 100_000_000}
PPO: dict[str, object] = {"hidden": [128, 64, 32], "horizon": 24, "epochs": 3, "log_std_init": -1.2}

FASTEST = 4.0  # that robots are taken to be [m/s]
RAY_START = 1.0  # height above the trunk from which rays look down [m]


@dataclass
class Config(quadruped.Config):
  """Settings of the quadruped on rough ground."""

  terrain_kinds: list[str] = option(list(KINDS), "kinds of ground, one for each column of tiles")
  terrain_levels: int = option(10, "rows of tiles, each harder than the one before", low=1)
  terrain_size: float = option(6.0, "sides of a tile, a multiple of two cells", "m", low=2)
  terrain_cell: float = option(0.1, "distance between points of the height field", "m", low=0.01)
  terrain_seed: int = option(0, "of what is random in the ground", low=0)
  scan_length: float = option(1.0, "length of the ground that the robot sees, along its heading", "m", low=0)
  scan_width: float = option(0.6, "width of the ground that the robot sees", "m", low=0)
  scan_spacing: float = option(0.1, "distance between points that it sees", "m", low=0.01)
  noise_scan: float = option(0.03, "largest error of the height of such a point", "m", low=0)
  start_offset: float = option(0.3, "largest distance from a tile's middle at the start", "m", low=0)
  heading_gain: float = option(1.0, "commanded rate of turning per angle off the heading", "1/s", low=0)
  command_sideways: float = option(0.3, "largest commanded speed to either side", "m/s", low=0)
  command_standing: float = option(0.02, "share of the commands that is to stand still", low=0, high=1)
  command_seconds: float = option(
    20.0, "longest time between commands; the shortest is half of it", "s", low=0.1
  )
  reward_vertical: float = option(-0.5, "weight of the squared speed along the trunk's z axis", "s^2/m^2")
  reward_tilt: float = option(-0.2, "weight of the squared sine of the tilt")


class Task(quadruped.Task):
  """Twelve joints; 125 numbers for the policy, 136 for the critic."""

  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Put the terrain under the robot."""
    return make_terrain(config).scene(super().scene(config))

  def setup(self) -> None:
    """Give every robot its kind of ground, and rays to see it."""
    config = self.config
    self.terrain = make_terrain(config, self.device)
    self.reach = config.terrain_size / 2  # from a tile's middle to its edge [m]
    kinds = len(config.terrain_kinds)
    self.kind = (kinds * self.random.uniform("kind of ground", ())).long()  # [num_envs]
    self.level = self.buffer(dtype=torch.int64, lasting=True)
    self.origin = self.buffer(3)  # the middle of the robot's tile, on the ground [m]
    self.heading = self.buffer()  # to walk at, about the vertical [rad]
    self.asked = self.buffer()  # distance that was commanded in this episode [m]
    super().setup()
    steps = (self.reach - config.start_offset) / FASTEST / self.dt  # from the start to the tile's edge
    self.least_between_truncations = max(1, min(self.max_episode_steps, int(steps)))
    self.columns, self.rows = (
      1 + round(side / config.scan_spacing) for side in (config.scan_length, config.scan_width)
    )
    ahead, left = (
      [config.scan_spacing * (i - (count - 1) / 2) for i in range(count)]
      for count in (self.columns, self.rows)
    )
    grid = [(x, y, RAY_START) for x in ahead for y in left]
    self.scan = self.rays(self.trunk, grid, (0, 0, -1), frame="yaw", geoms=["floor"])

  # ---- where a robot walks ----

  def initial_state(self) -> dict[str, Tensor]:
    """Start in the middle of a tile of the next level, turned anyhow."""
    start, level = super().initial_state(), self.next_level()
    origin = self.terrain.origins[level, self.kind]
    x_y_yaw = self.random.uniform("place", (3,), -1.0, 1.0)
    yaw, none = pi * x_y_yaw[:, 2], torch.zeros_like(x_y_yaw[:, 2])
    qpos = start["qpos"]
    qpos[:, :3] += origin
    qpos[:, :2] += self.config.start_offset * x_y_yaw[:, :2]
    qpos[:, 3:7] = torch.stack([(yaw / 2).cos(), none, none, (yaw / 2).sin()], 1)
    heading = self.draw_heading()
    command = self.turned(start["command"], heading - yaw)
    return start | {"level": level, "origin": origin, "heading": heading, "command": command}

  def next_level(self) -> Tensor:
    """Return the next level: in training one up for leaving the tile, one down for less than half the way.

    After the last level, and outside of training, it is a random one.
    """
    levels = self.config.terrain_levels
    drawn = (levels * self.random.uniform("level", ())).long()
    if not self.training:
      return drawn
    walked = torch.hypot(*(self.sim.qpos[:, :2] - self.origin[:, :2]).unbind(1))
    has_left = self.has_left()
    level = self.level + has_left.long() - (~has_left & (walked < self.asked / 2)).long()
    return torch.where(level < levels, level.clamp(min=0), drawn)

  def has_left(self) -> Tensor:
    """Return which robots are beyond the edges of their tiles [num_envs] bool."""
    return (self.sim.qpos[:, :2] - self.origin[:, :2]).abs().amax(1) > self.reach

  def new_command(self) -> dict[str, Tensor]:
    """Draw another velocity and another heading."""
    drawn, heading = super().new_command(), self.draw_heading()
    command = self.turned(drawn["command"], heading - self.yaw())
    return drawn | {"heading": heading, "command": command}

  def draw_heading(self) -> Tensor:
    """Return directions to walk in [num_envs] [rad]."""
    return self.random.uniform("heading", (), -pi, pi)

  def turned(self, command: Tensor, off: Tensor) -> Tensor:
    """Return the command with the turning towards a heading that is `off` [rad]; none for who stands."""
    wrapped = torch.remainder(off + pi, 2 * pi) - pi
    most = self.config.command_turn
    turning = (self.config.heading_gain * wrapped).clamp(-most, most) * (command.abs().amax(1) > 0)
    return torch.cat([command[:, :2], turning.unsqueeze(1)], 1)

  def yaw(self) -> Tensor:
    """Return the trunk's direction about the vertical [num_envs] [rad]."""
    w, x, y, z = self.sim.qpos[:, 3:7].unbind(1)
    return torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

  # ---- a step ----

  def update(self) -> None:
    """Turn the command towards the heading; where the tile is left, time is up."""
    self.command.copy_(self.turned(self.command, self.heading - self.yaw()))
    self.asked += self.dt * torch.hypot(*self.command[:, :2].unbind(1))
    super().update()
    self.episode_steps.masked_fill_(self.has_left(), self.max_episode_steps)

  def success(self) -> Tensor:
    """Succeed by leaving the tile."""
    return self.has_left()

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the ground as well: how deep it is below the trunk, compared with flat ground, within a metre."""
    scan = (self.scan.cast() - RAY_START - self.home[2]).clamp(-1.0, 1.0)
    return {group: {**blocks, "scan": scan} for group, blocks in super().observe().items()}

  def metrics(self) -> dict[str, Tensor]:
    """Log the level."""
    return super().metrics() | {"terrain_level": self.level}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right in what the robot sees."""
    points = [i * self.rows + self.rows - 1 - j for i in range(self.columns) for j in range(self.rows)]
    return {**super().symmetry(), "scan": (points, [1] * len(points))}


def make_terrain(config: Config, device: torch.device | str = "cpu") -> Terrain:
  """Return the terrain that the settings ask for."""
  return Terrain(
    config.terrain_kinds,
    config.terrain_levels,
    config.terrain_seed,
    config.terrain_size,
    config.terrain_cell,
    device,
  )
