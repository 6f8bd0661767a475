"""Video of a policy: python -m gpurobot.record checkpoint=<run folder or .pt file> video=<file>.

It renders without a display, by EGL or OSMesa. Several environments are shown as the tiles of a grid.
"""

import dataclasses
import sys
from pathlib import Path

from gpurobot import extras
from gpurobot.deploy.trained import Engine, PolicySettings, load, start
from gpurobot.settings.config import option


@dataclasses.dataclass
class Recording(PolicySettings):
  """Video of a policy."""

  video: str = option("video.mp4", "video file to write: .mp4, .gif or .webp")
  seconds: float = option(10.0, "length of the video", "s", low=0.1)
  speed: float = option(1.0, "playback speed: 0.5 shows the robot at half speed", low=0.01)
  fps: float = option(30.0, "frames per second of the video", low=1, high=120)
  width: int = option(640, "width of a tile", "pixels", low=16, high=4096)
  height: int = option(480, "height of a tile", "pixels", low=16, high=4096)
  num_envs: int = option(1, "number of environments, shown in a grid", low=1, high=100)
  camera: str | None = option(None, "camera of the model; null: a camera that follows the robot")
  sight: bool = option(True, "show the images that the policy sees beside the scene")
  engine: Engine = option(
    Engine.own,
    "own: gpurobot's; mujoco: MuJoCo C in float64 on the same model; file: there on the robot's own file; "
    "gymnasium: not available here",
  )


def record(settings: Recording) -> None:
  """Run the policy and write a camera's frames; raise ConfigError on a bad setting or without a renderer."""
  with extras.require_extra("viewer"):
    from gpurobot.viewer.film import Film  # noqa: PLC0415
    from gpurobot.viewer.offscreen import Camera, backend  # noqa: PLC0415
    from gpurobot.viewer.player import Player  # noqa: PLC0415
  player = Player(load(settings, settings.num_envs, settings.engine))
  camera = Camera(player.task, settings.num_envs, settings.width, settings.height, settings.camera)
  frames = max(1, round(settings.seconds * settings.fps))
  with Film(Path(settings.video), settings.fps) as film:
    for frame in range(frames):
      while player.time < frame * settings.speed / settings.fps:
        player.step()
      film.add(camera.shoot(player.policy_images if settings.sight else None))
  camera.close()
  print(f"{settings.video}: {frames} frames, {player.time:.1f} s of simulated time, rendered by {backend()}")


def main(argv: list[str]) -> None:
  """Record a policy with the settings in `argv`."""
  start(Recording(), "python -m gpurobot.record", argv, record)


if __name__ == "__main__":
  main(sys.argv[1:])
