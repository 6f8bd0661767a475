"""Files that nobody would write by chance: each ends in one line, in bounded time and memory."""

import os
from pathlib import Path

import pytest

from gpurobot import describe, motion
from physics.mesh_files import find_package
from tests.mistakes.told import told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


@pytest.mark.parametrize("program", [describe.main, motion.main])
def test_a_name_too_long_for_a_file_is_told(capsys, program):
  assert "File name too long: 'aaa" in told(capsys, program, ["a" * 5000])


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_manifest_that_is_no_file_is_passed_over(tmp_path, make):
  (tmp_path / "other").mkdir()
  make(tmp_path / "other" / "package.xml")
  with pytest.raises(FileNotFoundError, match=r"^no package 'mine'"):
    find_package("mine", tmp_path / "robot", {})
