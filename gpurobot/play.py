"""Watch a policy at play: python -m gpurobot.play checkpoint=<run folder or .pt file> [key=value ...].

A page shows it in any browser, over ssh too; viewer=native opens MuJoCo's own window.
"""

import dataclasses
import sys
from enum import StrEnum

from gpurobot import extras
from gpurobot.config import option
from gpurobot.deploy.trained import Engine, PolicySettings, load, start


class Viewer(StrEnum):
  """What shows the robot."""

  browser = "browser"
  native = "native"


@dataclasses.dataclass
class Play(PolicySettings):
  """Settings of a view."""

  viewer: Viewer = option(Viewer.browser, "browser: a page; native: MuJoCo's own window, on a display")
  num_envs: int = option(16, "environments to choose from", low=1, high=1000)
  host: str = option("localhost", "address that the page is served at; 0.0.0.0: to every machine")
  port: int = option(8080, "port of the page, or the next free one", low=1, high=65535)
  engine: Engine = option(Engine.own, "own, or mujoco: MuJoCo C in float64 on the same model")


def play(settings: Play) -> None:
  """Show the policy until the view is closed, or Ctrl-C."""
  with extras.require_extra("viewer"):
    from gpurobot.viewer.player import Player  # noqa: PLC0415

    if settings.viewer is Viewer.native:
      from gpurobot.viewer.native import KEYS, Window  # noqa: PLC0415
    else:
      from gpurobot.viewer.browser import Browser  # noqa: PLC0415
  player = Player(load(settings, settings.num_envs, settings.engine))
  if settings.viewer is Viewer.native:
    print(KEYS)
    Window(player).run()
    return
  browser = Browser(player, str(settings.checkpoint), settings.host, settings.port)
  port = browser.server.get_port()
  print(
    f"open {browser.address}; from another machine: ssh -L {port}:localhost:{port} <this one>", flush=True
  )
  browser.run()


def main(argv: list[str]) -> None:
  """Play as the words say."""
  start(Play(), "python -m gpurobot.play", argv, play)


if __name__ == "__main__":
  main(sys.argv[1:])
