"""Make a video of a policy: python -m gpurobot.record checkpoint=<run folder or .pt file> video=<file>.

It draws without a display, through EGL or OSMesa. With several environments each has a tile of a grid.
"""

import dataclasses
import sys
from pathlib import Path

from gpurobot import extras
from gpurobot.config import option
from gpurobot.deploy.trained import Engine, PolicySettings, load, start


@dataclasses.dataclass
class Recording(PolicySettings):
  """Settings of a video."""

  video: str = option("video.mp4", "file to write: .mp4, .gif or .webp")
  seconds: float = option(10.0, "length of the video", "s", low=0.1)
  speed: float = option(1.0, "of the robot's time: 0.5 shows it at half its speed", low=0.01)
  fps: float = option(30.0, "pictures in a second of the video", low=1, high=120)
  width: int = option(640, "of a tile", "pixels", low=16, high=4096)
  height: int = option(480, "of a tile", "pixels", low=16, high=4096)
  num_envs: int = option(1, "environments, side by side in a grid", low=1, high=100)
  camera: str | None = option(None, "a camera of the model; null: one that follows the robot")
  engine: Engine = option(Engine.own, "own, or mujoco: MuJoCo C in float64 on the same model")


def record(settings: Recording) -> None:
  """Play the policy and write what a camera sees; raise ConfigError where that cannot be."""
  with extras.require_extra("viewer"):
    from gpurobot.viewer.film import Film  # noqa: PLC0415
    from gpurobot.viewer.offscreen import Camera, backend  # noqa: PLC0415
    from gpurobot.viewer.player import Player  # noqa: PLC0415
  player = Player(load(settings, settings.num_envs, settings.engine))
  camera = Camera(player.task, settings.num_envs, settings.width, settings.height, settings.camera)
  pictures = max(1, round(settings.seconds * settings.fps))
  with Film(Path(settings.video), settings.fps) as film:
    for picture in range(pictures):
      while player.time < picture * settings.speed / settings.fps:
        player.step()
      film.add(camera.shoot())
  camera.close()
  print(f"{settings.video}: {pictures} pictures, {player.time:.1f} s of the robot's time, by {backend()}")


def main(argv: list[str]) -> None:
  """Record as the words say."""
  start(Recording(), "python -m gpurobot.record", argv, record)


if __name__ == "__main__":
  main(sys.argv[1:])
