"""Files that nobody would write by chance: each ends in one line, in bounded time and memory."""

import os
import time
from pathlib import Path

import pytest

import physics
from gpurobot import describe, motion
from physics.mesh_files import find_package
from physics.model_size import check_size
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


MANY = "<replicate{}offset='1 0 0'><geom size='.1'/></replicate>"
MILLION = MANY.format(" count='1000000' ")
MODELS = {  # robot.xml and part.xml: what is told
  "included": ("<include file='part.xml'/>", MILLION, "1,000,000 copies: at most 20,000"),
  "attached": (
    "</worldbody><asset><model file='part.xml'/></asset><worldbody>",
    MILLION,
    "1,000,000 copies: at most 20,000",
  ),
  "a space": (MANY.format(" count=' 1000000' "), "", "1,000,000 copies: at most 20,000"),
  "a sign": (MANY.format(" count='+1000000' "), "", "1,000,000 copies: at most 20,000"),
  "a code": (MANY.format(" count='&#49;000000' "), "", "1,000,000 copies: at most 20,000"),
  "an arrow": (MANY.format(" sep='>' count='1000000' "), "", "1,000,000 copies: at most 20,000"),
  "none first": (f"<replicate count='0' offset='1 0 0'>{MILLION}</replicate>", "", "1,000,000 copies"),
  "copies of an included file": (
    "<replicate count='9999' offset='1 0 0'><include file='part.xml'/></replicate>",
    "<geom size='.1'/>" * 3,
    "29,997 geoms: at most 20,000",
  ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "part", "says"), MODELS.values(), ids=MODELS)
def test_a_large_model_is_refused_before_it_is_built(tmp_path, text, part, says):
  part = f"<worldbody>{part}</worldbody>" if "asset" in text else part
  (tmp_path / "part.xml").write_text(f"<mujoco>{part}</mujoco>")
  (tmp_path / "robot.xml").write_text(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
  with pytest.raises(ValueError, match=says):
    physics.load_model(tmp_path / "robot.xml")


def test_neither_comments_nor_text_count(tmp_path):
  parts = f"<!-- -- {'<geom/>' * 30_000} --><![CDATA[{'<geom/>' * 30_000}]]>"
  (tmp_path / "part.xml").write_text("<mujoco><geom size='.1'/></mujoco>")
  text = (
    f"<mujoco><worldbody>{parts}<replicate count='2' offset='1 0 0'><include file='part.xml'/></replicate>"
  )
  (tmp_path / "robot.xml").write_text(f"{text}</worldbody></mujoco>")
  assert physics.load_model(tmp_path / "robot.xml").ngeom == 2


@pytest.mark.parametrize(
  "text", ["<a<a" * 300_000, "<!--" * 300_000, "<![CDATA[" * 300_000, "<a '\"" * 300_000]
)
def test_damaged_text_is_read_once(text):
  began = time.monotonic()
  check_size(text, Path())
  assert time.monotonic() - began < 20


def test_an_included_pipe_is_not_waited_for(tmp_path):
  os.mkfifo(tmp_path / "part.xml")
  (tmp_path / "robot.xml").write_text("<mujoco><include file='part.xml'/></mujoco>")
  with pytest.raises(ValueError, match=r"robot.xml: 'part.xml' is no file: name one$"):
    physics.load_model(tmp_path / "robot.xml")
