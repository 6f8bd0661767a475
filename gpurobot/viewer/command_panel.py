"""Commands in the browser: sliders, keys, sticks, and the command drawn in the scene."""

import functools
import math
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import viser

from gpurobot.viewer.marks import ACTUAL, COMMANDED, Arrow
from gpurobot.viewer.player import Player
from tasks.base import Commands

STEPS = 40  # fewest positions of a slider
NUDGE = 0.1  # change by a key, as a share of the range
# Keys that raise and lower the first three components: viser moves its camera with W, A, S, D, Q and E.
KEYS = (("I", "K"), ("J", "L"), ("U", "O"))
# Axes of a gamepad that set the first three components, all up or to the left: the last one is the yaw rate
# of a velocity command, and the height of a position.
STICKS = {"velocity": (1, 0, 2), "position": (1, 0, 3)}
STILL = 0.1  # largest position of a stick that counts as none


class CommandPanel:
  """Folder of the page with a slider for each component of a task's commands."""

  def __init__(self, server: viser.ViserServer, player: Player, commands: Commands, world: str) -> None:
    """Add the folder and the keys of the page; a key also switches the sliders on.

    world: name of the page's node with the world frame.
    """
    self._server, self._player, self._commands = server, player, commands
    self._nudges: SimpleQueue[tuple[str, float]] = SimpleQueue()
    self._name = f"{world}/command"
    self._node: viser.ArrowHandle | None = None  # the arrows, once they are drawn
    ranges = {name: span for name, span in self._commands.ranges.items() if span[0] < span[1]}
    with server.gui.add_folder("Command"):
      self.driven = server.gui.add_checkbox("Drive", False, hint="otherwise the task draws the commands")
      self.sliders = {
        name: server.gui.add_slider(f"{name} [{unit}]", *positions(low, high))
        for name, (low, high, unit) in ranges.items()
      }
      self._add_keys()

  def _add_keys(self) -> None:
    """Bind keys to the sliders, and list them."""
    words = []
    for name, keys in zip(self.sliders, KEYS, strict=False):
      words.append(f"{keys[0]}/{keys[1]} {name}")
      for key, share in zip(keys, (NUDGE, -NUDGE), strict=True):
        label = f"{name} {'+' if share > 0 else '-'}"
        command = self._server.gui.add_command(label, hotkey=key)
        command.on_trigger(functools.partial(self._press, name, share))
    self._server.gui.add_markdown(f"Keys: {', '.join(words)}")

  def _press(self, name: str, share: float, _event: object = None) -> None:
    self._nudges.put((name, share))

  def take_sticks(self, axes: list[float] | None) -> None:
    """Set the sliders by the axes of a gamepad [4]; None: they did not move."""
    if axes is None:
      return
    sticks = STICKS[self._commands.shows or "velocity"]
    for slider, axis in zip(self.sliders.values(), sticks, strict=False):
      share = 0.0 if abs(axes[axis]) < STILL else -axes[axis]
      move(slider, (slider.min + slider.max) / 2 + share * (slider.max - slider.min) / 2)
    self.driven.value = True

  def apply(self) -> None:
    """Give the player the command of the sliders, between two steps; None if they are off."""
    while not self._nudges.empty():
      name, share = self._nudges.get()
      slider = self.sliders[name]
      move(slider, within(slider) + share * (slider.max - slider.min))
      self.driven.value = True
    wanted = {name: within(slider) for name, slider in self.sliders.items()}
    command = [wanted.get(name, low) for name, (low, _high, _unit) in self._commands.ranges.items()]
    self._player.command = command if self.driven.value else None

  def draw(self, arrows: Sequence[Arrow]) -> None:
    """Show the commanded and the actual velocity of the selected environment in the scene."""
    if not arrows:
      return
    points = np.stack(arrows)
    if self._node is None:
      self._node = self._server.scene.add_arrows(self._name, points, np.array([COMMANDED, ACTUAL]))
    self._node.points = points


def positions(low: float, high: float) -> tuple[float, float, float, float]:
  """Return the ends of a slider in a range, its step, a power of ten, and its initial position."""
  digits = -math.floor(math.log10((high - low) / STEPS))
  first, last = math.ceil(round(low * 10.0**digits, 6)), math.floor(round(high * 10.0**digits, 6))
  ends = [round(end / 10.0**digits, max(digits, 0)) for end in (first, last, 1, min(max(0, first), last))]
  return ends[0], ends[1], ends[2], ends[3]


def move(slider: viser.GuiSliderHandle[Any], value: float) -> None:
  """Set a slider to the nearest of its positions."""
  value = round(value / slider.step) * slider.step
  slider.value = round(min(max(value, slider.min), slider.max), slider.precision)


def within(slider: viser.GuiSliderHandle[Any]) -> float:
  """Return a slider's value within its range; a client may send any number."""
  return max(slider.min, min(slider.value, slider.max))
