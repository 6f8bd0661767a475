"""Gamepad of Linux while a robot runs: commands and stop."""

import os
import struct

from gpurobot.robot.keyboard import Commands
from gpurobot.robot.safety import StopError
from gpurobot.settings.config import ConfigError

EVENT = struct.Struct("=IhBB")  # of the kernel's joystick interface: time [ms], value, kind, number
BUTTON, AXIS = 1, 2  # kinds; the device's first state has another bit, and is ignored
FULL, DEAD = 32767, 0.1  # value of a stick at its end, and share of it that counts as the middle
STICKS = {1: 0, 0: 1, 3: 2}  # command of an axis, as Xbox and PlayStation count them; up and left: negative
STOP = 1  # button B, or circle
HELP = "gamepad: left stick ahead, back, left and right, right stick turns, B or circle stops"


class Gamepad:
  """Commands and stop from a gamepad."""

  def __init__(self, path: str, commands: Commands) -> None:
    """Open a device such as /dev/input/js0; raise ConfigError if it cannot be read."""
    try:
      self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
      raise ConfigError(f"gamepad={path}: {error.strerror}: name a device such as /dev/input/js0") from error
    self._commands, self._rest, self._shares = commands, b"", [0.0] * len(STICKS)

  def poll(self) -> None:
    """Apply the events so far; raise StopError at the stop button, or if the gamepad is gone."""
    try:
      content = os.read(self._file, 64 * EVENT.size)
    except BlockingIOError:
      return
    except OSError:
      content = b""
    if not content:
      raise StopError("the gamepad is gone")
    content, moved = self._rest + content, False
    whole = len(content) // EVENT.size * EVENT.size
    self._rest = content[whole:]
    for _, value, kind, number in EVENT.iter_unpack(content[:whole]):
      if kind == BUTTON and number == STOP and value:
        raise StopError("a button was pressed")
      if kind == AXIS and number in STICKS:
        share = max(-1.0, -value / FULL)
        self._shares[STICKS[number]], moved = share if abs(share) > DEAD else 0.0, True
    if moved:
      self._commands.share(self._shares)
