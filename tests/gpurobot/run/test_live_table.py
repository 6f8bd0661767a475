"""The live table, drawn on a console in memory and in a terminal of its own."""

import contextlib
import io
import math
import os
import pty
import re
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import train
from gpurobot.learn.ppo import PPO
from gpurobot.run import live_table
from gpurobot.run.display import Lines, Progress
from gpurobot.run.live_table import Block, Line, LiveTable, clock, number, placed
from gpurobot.run.log import open_display
from gpurobot.run.returns import Returns
from gpurobot.settings.config import TrainConfig
from tests.gpurobot import toy

ROW = {
  "iteration": 7,
  "steps": 7168,
  "steps_per_second": 12345.6,
  "return": 21.5,
  "length": 180.0,
  "success": 0.25,
  "reward/min": -9.0,
  "reward/max": 9.0,
  "reward/progress": 0.5,
  "reward/effort": -0.25,
  "speed": 1.25,
  "kl": 0.0123,
  "clipped": 0.125,
  "time/physics": 0.75,
  "time/update": 0.25,
  "overflow": 0.0,
  "nonfinite": 0.0,
}


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
  """Let no time pass between the numbers of a progress and their drawing."""
  monkeypatch.setattr(live_table, "time", SimpleNamespace(monotonic=lambda: NOW))


NOW = 1000.0


class Terminal(io.StringIO):
  """A terminal in memory, by what it says of itself."""

  encoding = "utf-8"

  def isatty(self) -> bool:
    return True


def drawn(width=80, height=24, row=ROW, progress=None, warnings=(), encoding="utf-8") -> list[str]:
  """Return the lines of the table on a screen."""
  returns = Returns()
  for index, value in enumerate((1.0, 30.0, 21.5)):
    returns.add(value, 100, 1024 * index, float(index))
  file = Terminal()
  file.encoding = encoding
  console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None)
  table = LiveTable(console, "ant", Path("runs/ant/a"), returns)
  table.close()
  for warning in warnings:
    table.warn(warning)
  table.progress(progress or Progress(7, 7168, 59.0, 0.5, 61.0, NOW))
  table.write(row)
  file.truncate(file.seek(0))
  console.print(table)
  return file.getvalue().splitlines()


def test_all_that_matters_is_on_a_small_screen():
  lines = drawn()
  assert len(lines) < 24
  assert max(map(len, lines)) <= 80 - len("^C")  # which a terminal echoes behind the last
  text = "\n".join(lines)
  assert lines[0].split() == ["ant", "runs/ant/a"]
  assert re.search(r"━ +50%  0:00:59, 0:01:01 left  7,168 steps, 12,346/s$", lines[1])
  for name, shown in (
    ("return", "21.50"),
    ("best", "30.00"),
    ("length", "180.0"),
    ("success", "25.0%"),
    ("progress", "0.500 ████████"),
    ("effort", "-0.250 ████"),
    ("speed", "1.250"),
    ("KL", "0.0123"),
    ("clipped", "12.5%"),
    ("physics", "75%"),
    ("update", "25%"),
    ("curve", "▁█▆"),
  ):
    assert re.search(rf"\b{name} +{shown}( |$)", text, re.MULTILINE), name
  assert "min" not in text
  assert "!" not in text


@pytest.mark.parametrize("size", [(20, 4), (40, 8), (80, 10), (200, 50)])
def test_no_screen_is_too_small(size):
  row = ROW | {f"reward/term_{index}": 0.1 for index in range(30)}
  lines = drawn(*size, row, warnings=["look"])
  assert len(lines) < max(size[1], 5)
  assert max(map(len, lines)) <= size[0]


def test_no_width_breaks_a_number():
  row = ROW | {"overflow": 123456.0, "nonfinite": 7890.0, "behaviour/age": 1.0}
  progress = Progress(7, 123456789, 59.0, 0.5, 36061.0, NOW)
  numbers = set(re.findall(r"[\d.,:/%]*\d[\d.,:/%]*", " ".join(drawn(1000, 100, row, progress))))
  whole = {known.rstrip(",") for known in numbers}
  for width in range(1, 120):
    for line in drawn(width, 100, row, progress)[1:]:
      found = re.findall(r"[\d.,:/%]*\d[\d.,:/%]*", re.sub(r"(?<=[\d.,])…", "999", line))
      assert {shown.rstrip(",") for shown in found} <= whole, (width, line)


def test_what_does_not_fit_is_counted():
  lines = [Line(str(index), "") for index in range(10)]
  (column,) = placed([Block("a", lines), Block("b", lines)], 1, 8)
  assert [block.title for block in column] == ["a"]
  assert [line.name for line in column[0].lines] == ["0", "1", "2", "3", "4", "5", "... 4 more"]


def test_blocks_fill_the_shortest_column():
  blocks = [Block(name, [Line("x", "")] * size) for name, size in (("a", 2), ("b", 5), ("c", 3), ("d", 1))]
  columns = placed(blocks, 2, 40)
  assert [[block.title for block in column] for column in columns] == [["a", "c"], ["b", "d"]]


def test_numbers_of_episodes_stay_until_the_next_one_ends():
  console = Console(file=Terminal(), width=80, height=24)
  table = LiveTable(console, "ant", Path("runs/ant/a"), Returns())
  table.close()
  for row in (ROW, ROW | {"return": math.nan, "length": math.nan, "success": math.nan, "speed": 2.0}):
    table.write(row)
  console.file.truncate(console.file.seek(0))
  console.print(table)
  for shown in ("return +21.50", "length +180.0", "success +25.0%", "speed +2.000"):
    assert re.search(shown, console.file.getvalue())


def test_numbers_have_about_four_digits():
  found = [number(value) for value in (0.0, 1.5e-5, -0.0451, 0.5, 12.345, 123.45, 1234567.8)]
  assert found == ["0.0000", "1.5e-05", "-0.0451", "0.500", "12.35", "123.5", "1,234,568"]


def test_times_are_hours_minutes_and_seconds():
  assert [clock(seconds) for seconds in (-1, 59.6, 3725)] == ["0:00:00", "0:01:00", "1:02:05"]


@pytest.mark.parametrize(
  ("variable", "value", "file"),
  [("FORCE_COLOR", "1", io.StringIO), ("TTY_COMPATIBLE", "1", io.StringIO), ("TERM", "dumb", Terminal)],
)
def test_what_is_no_terminal_and_a_dumb_one_get_lines(variable, value, file, monkeypatch):
  monkeypatch.setenv(variable, value)
  assert type(open_display(TrainConfig(), Path(), Returns(), Console(file=file()))) is Lines


def test_lines_have_dashes_where_a_graph_joins_the_parts_of_an_iteration_and_no_episode_has_ended():
  console = Console(file=io.StringIO(), width=200)
  row = {key: value for key, value in ROW.items() if not key.startswith("time/")}
  row |= {"time/rollout": 0.75, "time/update": 0.25, "kl": 0.01, "value_loss": 1.5}
  Lines(console).write(row | dict.fromkeys(("return", "length"), math.nan))
  text = console.file.getvalue().replace("time s", "time").replace("v loss", "loss")
  heads, cells = (line.split() for line in text.splitlines())
  shown = dict(zip(heads, cells, strict=True))
  assert [shown[part] for part in ("physics", "task", "policy", "update")] == ["-", "-", "-", "25%"]
  assert [shown[part] for part in ("return", "length", "KL")] == ["-", "-", "0.0100"]


def test_the_table_says_what_is_special():
  troubled = drawn(row=ROW | {"overflow": 1200.0, "nonfinite": 1.0}, warnings=["look"])
  assert troubled[-1] == "! contacts dropped: 1,200, environments diverged: 1, warnings above: 1"
  assert "Time of two threads at once" in "\n".join(drawn(row=ROW | {"behaviour/age": 1.0}, height=60))
  early = drawn(row=ROW | dict.fromkeys(("return", "length", "success"), math.nan))
  assert "no episode ended yet" in "\n".join(early)
  assert len(drawn(row={})) == 2  # before the first row there is the progress alone
  assert "\n".join(drawn(encoding="ascii")).isascii()


def test_without_a_limit_there_is_no_share():
  assert "%" not in drawn(progress=Progress(7, 7168, 59.0, at=NOW))[1]


HIDE, SHOW, UP = "\x1b[?25l", "\x1b[?25h", "\x1b[1A"


def test_a_terminal_gets_a_table_in_place_and_then_the_summary(tmp_path, monkeypatch, keep_signal_handlers):
  """Also where the training is interrupted."""
  main, terminal = pty.openpty()
  got = []

  def read():
    with contextlib.suppress(OSError):  # Linux says so when the last writer has closed a terminal
      while True:
        got.append(os.read(main, 65536))

  def interrupted(learner, update=PPO.update):
    update(learner)
    if learner.iteration == 2:
      print("printed by a task")  # noqa: T201
      signal.raise_signal(signal.SIGINT)

  for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}.items():
    monkeypatch.setenv(name, value)
  monkeypatch.setattr(live_table, "time", time)
  monkeypatch.setattr(PPO, "update", interrupted)
  reader = threading.Thread(target=read)
  reader.start()
  with os.fdopen(terminal, "w") as stream:
    monkeypatch.setattr(sys, "stdout", stream)
    status = train.main([f"task={toy.__file__}", f"run_dir={tmp_path}", "log_every=1", "max_iterations=4"])
    monkeypatch.undo()
  reader.join()
  os.close(main)
  text = b"".join(got).decode()
  assert status == 130
  assert UP in text
  assert text.rindex(SHOW) > text.rindex(HIDE)
  last = text[text.rindex("Reward per step") :]
  assert "distance" in last
  assert "printed by a task" in text[: text.rindex("Reward per step")]
  assert f"{tmp_path}: 1,024 steps in " in text[text.rindex(SHOW) :].replace("\r\n", "")
