"""Events of a gamepad change the commands, and stop."""

import os
import struct

import pytest

from gpurobot.robot import run
from gpurobot.robot.gamepad import HELP, Gamepad
from gpurobot.robot.keyboard import Commands
from gpurobot.robot.safety import StopError
from gpurobot.settings.config import ConfigError

RANGES = [{"range": [-0.5, 1]}, {"range": [-0.4, 0.4]}, {"range": [-1, 1]}]


def event(kind, number, value):
  """Return an event as Linux's joystick interface has it."""
  return struct.pack("<IhBB", 0, value, kind, number)


@pytest.fixture
def pad(tmp_path):
  """A gamepad that is a pipe, its commands, and the function that sends it events."""
  os.mkfifo(tmp_path / "js0")
  commands = Commands(RANGES, [0.3, 0, 0])
  gamepad = Gamepad(str(tmp_path / "js0"), commands)
  writer = os.open(tmp_path / "js0", os.O_WRONLY)
  yield gamepad, commands, lambda content: os.write(writer, content), writer
  os.close(gamepad._file)


def test_sticks_command_and_a_button_stops(pad):
  gamepad, commands, send, writer = pad
  send(event(0x82, 1, 0) + event(0x81, 1, 1) + event(1, 0, 1) + event(2, 5, 99))  # first state, other parts
  gamepad.poll()
  assert commands.values.tolist() == [0.3, 0, 0]
  send(event(2, 1, -32767) + event(2, 0, 16384) + event(2, 3, -32768)[:3])
  gamepad.poll()
  assert commands.values == pytest.approx([1, -0.2, 0], abs=1e-4)
  send(event(2, 3, -32768)[3:] + event(2, 0, 3000))  # the rest of an event, and a stick near its middle
  gamepad.poll()
  assert commands.values == pytest.approx([1, 0, 1], abs=1e-4)
  send(event(2, 1, 32767))
  gamepad.poll()
  gamepad.poll()
  assert commands.values == pytest.approx([-0.5, 0, 1], abs=1e-4)
  send(event(1, 1, 1))
  with pytest.raises(StopError, match="a button was pressed"):
    gamepad.poll()
  os.close(writer)
  with pytest.raises(StopError, match="the gamepad is gone"):
    gamepad.poll()


def test_a_run_stops_at_a_button(standing, tmp_path, capsys):
  os.mkfifo(tmp_path / "js0")
  writer = os.open(tmp_path / "js0", os.O_RDWR)
  os.write(writer, event(1, 1, 1))
  words = ["sim.realtime=false", f"gamepad={tmp_path / 'js0'}", f"log={tmp_path / 'log.npz'}"]
  run.main([str(standing), *words])
  printed = capsys.readouterr().out.splitlines()
  assert printed[:2] == [HELP, "the run ended: a button was pressed"]
  os.close(writer)


def test_a_missing_device_is_told_of(tmp_path):
  with pytest.raises(ConfigError, match="No such file or directory: name a device such as /dev/input/js0"):
    Gamepad(str(tmp_path / "js0"), Commands(RANGES, []))
