"""Interactive viewer: python -m gpurobot.play checkpoint=<run folder or .pt file> [key=value ...].

It serves a web page for any browser, also over ssh; viewer=native opens MuJoCo's own window.
"""

import dataclasses
import sys
from enum import StrEnum

from gpurobot import extras
from gpurobot.deploy.trained import Engine, PolicySettings, load, start
from gpurobot.settings.config import option


class Viewer(StrEnum):
  """Viewer of the robot."""

  browser = "browser"
  native = "native"


@dataclasses.dataclass
class Play(PolicySettings):
  """Interactive viewer of a policy."""

  viewer: Viewer = option(Viewer.browser, "browser: a web page; native: MuJoCo's own window, on a display")
  num_envs: int = option(16, "number of environments", low=1, high=1000)
  host: str = option("localhost", "address to serve the page at; 0.0.0.0: reachable from other machines")
  port: int = option(8080, "port of the page; if it is taken, the next free one", low=1, high=65535)
  allowed_hosts: list[str] = option(
    [], "other names by which browsers may ask for the page, such as a proxy's: [robots.example.org]"
  )
  against: str | None = option(
    None, "run folder or .pt file of a rival for the task, which acts in every second environment"
  )
  engine: Engine = option(
    Engine.own,
    "own: gpurobot's; mujoco: MuJoCo C in float64 on the same model; file: there on the robot's own file; "
    "gymnasium: not available here",
  )


def play(settings: Play) -> None:
  """Show the policy until the window is closed or Ctrl-C is pressed."""
  with extras.require_extra("viewer"):
    from gpurobot.viewer.player import Player  # noqa: PLC0415

    if settings.viewer is Viewer.native:
      from gpurobot.viewer.native import KEYS, Window  # noqa: PLC0415
    else:
      from gpurobot.viewer.browser import Browser  # noqa: PLC0415
  player = Player(load(settings, settings.num_envs, settings.engine), settings.against)
  if settings.viewer is Viewer.native:
    print(KEYS)
    Window(player).run()
    return
  source = str(settings.checkpoint)
  browser = Browser(player, source, settings.host, settings.port, settings.allowed_hosts)
  port = browser.server.get_port()
  print(
    f"open {browser.address}; from another machine, first: ssh -L {port}:localhost:{port} <this machine>",
    flush=True,
  )
  browser.run()


def main(argv: list[str]) -> None:
  """Play a policy with the settings in `argv`."""
  start(Play(), "python -m gpurobot.play", argv, play)


if __name__ == "__main__":
  main(sys.argv[1:])
