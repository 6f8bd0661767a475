"""Help of the programs: that of the programs themselves, without their libraries."""

import contextlib
import sys

import pytest

from gpurobot.shell import quick_help
from gpurobot.shell.programs import PROGRAMS

SETTINGS = [name for name, program in PROGRAMS.items() if program.settings]


@pytest.mark.parametrize(
  ("name", "words"),
  [
    *((name, ["--help"]) for name in SETTINGS),
    ("train", ["-h"]),
    ("train", ["--help=all"]),
    ("train", ["task=gym/Hopper-v5", "algorithm=sac", "--help"]),
  ],
)
def test_it_is_what_the_program_prints(name, words, monkeypatch, capsys):
  monkeypatch.setattr(sys, "argv", [f"gpurobot {name}"])
  text = quick_help.text(name, words)
  with contextlib.suppress(SystemExit):  # train's help ends it
    __import__(PROGRAMS[name].module, fromlist=[name]).main(words)
  assert capsys.readouterr().out == f"{text}\n"
  assert [word for word in words if not word.startswith("-") and word not in str(text)] == []


@pytest.mark.parametrize(
  ("name", "word"),
  [
    ("train", "task=mine.py"),
    ("train", "task=dm/walker_run"),
    ("train", "resume=runs/ant"),
    ("train", "algorithm=dqn"),
    ("evaluate", "checkpoint=runs/ant"),
    ("demo", "ant"),
    ("tasks", "new=mine"),
  ],
)
def test_what_depends_on_more_is_left_to_the_program(name, word):
  assert quick_help.text(name, [word, "--help"]) is None
