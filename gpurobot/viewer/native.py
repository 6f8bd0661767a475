"""Viewer in MuJoCo's own window, with keys for the actions of the web page's buttons."""

import math
import random
import time
import warnings
from collections.abc import Callable
from queue import SimpleQueue

import glfw
import mujoco
import mujoco.viewer

from gpurobot.settings.config import ConfigError
from gpurobot.viewer.marks import draw_arrows
from gpurobot.viewer.offscreen import Picture, fit
from gpurobot.viewer.player import Player
from gpurobot.viewer.task_scene import TaskScene

PUSH = 1.0  # [m/s]
IMAGE_HEIGHT = 0.25  # height of an image that the policy sees, as a part of the window's
KEYS = "space: pause, right and left: next and previous environment, P: push, R: restart"


class Window:
  """Window on a display that shows a player's robot."""

  def __init__(self, player: Player) -> None:
    """Bind the keys."""
    self.player, self.rendered, self.paused = player, TaskScene(player.task), False
    self._pressed: SimpleQueue[int] = SimpleQueue()
    self._acts: dict[int, Callable[[], None]] = {  # by GLFW key code
      ord(" "): self._pause,
      ord("P"): lambda: player.push(PUSH, random.uniform(-math.pi, math.pi)),
      ord("R"): player.restart,
      262: lambda: self._move(1),
      263: lambda: self._move(-1),
    }

  def _pause(self) -> None:
    self.paused = not self.paused

  def _move(self, by: int) -> None:
    self.player.look_at((self.player.index + by) % self.player.task.num_envs)

  def run(self) -> None:
    """Play until the window is closed; raise ConfigError if there is no display."""
    with warnings.catch_warnings():
      warnings.simplefilter("ignore", glfw.GLFWError)
      if not glfw.init():  # MuJoCo would end the process
        raise ConfigError("viewer=native needs a display; leave it out for a page in the browser")
    self.rendered.show(0)
    rendered = self.rendered
    with mujoco.viewer.launch_passive(
      rendered.model, rendered.data, key_callback=self._pressed.put
    ) as window:
      self._look(window.cam)
      while window.is_running():
        start = time.monotonic()
        self.turn()
        window.set_images(self.overlay(window.viewport))
        window.user_scn.ngeom = 0
        draw_arrows(window.user_scn, self.rendered.arrows)
        window.sync()
        time.sleep(max(0.0, self.player.task.dt - (time.monotonic() - start)))

  def _look(self, camera: mujoco.MjvCamera) -> None:
    """Point the window's camera."""
    wanted = self.rendered.view()
    for name in ("type", "trackbodyid", "lookat", "azimuth", "elevation", "distance"):
      setattr(camera, name, getattr(wanted, name))

  def overlay(self, area: mujoco.MjrRect) -> list[tuple[mujoco.MjrRect, Picture]]:
    """Return the policy's images of the selected environment, placed along the upper edge of an area."""
    placed, left = [], area.left
    for image in self.player.policy_images(self.player.index).values():
      shown = fit(image, area.width, max(1, int(IMAGE_HEIGHT * area.height)))
      height, width, _ = shown.shape
      placed.append((mujoco.MjrRect(left, area.bottom + area.height - height, width, height), shown))
      left += width
    return placed

  def turn(self) -> None:
    """Handle pressed keys, step once unless paused, and show the state."""
    while not self._pressed.empty():
      self._acts.get(self._pressed.get(), lambda: None)()
    if not self.paused:
      self.player.step()
    self.rendered.show(self.player.index)
