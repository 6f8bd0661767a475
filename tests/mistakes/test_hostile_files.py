"""Files that nobody would write by chance: each ends in one line, in bounded time and memory."""

import os
import time
from pathlib import Path

import pytest
from mujoco import mjtBias

import physics
from gpurobot import describe, motion
from physics.mesh_files import find_package
from physics.model_size import check_size
from physics.urdf import read_urdf
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


def test_files_that_include_others_without_end_are_told(tmp_path):
  for i in range(1500):
    (tmp_path / f"{i}.xml").write_text(f"<mujoco><include file='{i + 1}.xml'/></mujoco>")
  with pytest.raises(ValueError, match=r"0\.xml: maximum recursion depth exceeded"):
    physics.load_model(tmp_path / "0.xml")


LINKS = "".join(f"<link name='{name}'/>" for name in "abc")
SERVO = """<joint name='{0}' type='revolute'><parent link='a'/><child link='{0}'/>
<limit lower='-1' upper='1' effort='9' velocity='{1}'/><mimic joint='{2}'/></joint>"""


def urdf(path, *joints):
  path.write_text(f"<robot name='r'>{LINKS}{''.join(joints)}</robot>")
  return path


FIXED = "<joint name='{0}' type='fixed'><parent link='{1}'/><child link='{0}'/></joint>"
JOINTS = {
  "joint 'b' mimics itself, by way of 'c'": (SERVO.format("b", 1, "c"), SERVO.format("c", 1, "b")),
  "link 'a' is fixed to itself, by way of 'b'": (FIXED.format("a", "b"), FIXED.format("b", "a")),
  "joint 'b': limit velocity=-1 is negative": (SERVO.format("b", -1, "c"), SERVO.format("c", 1, "a")),
}


@pytest.mark.parametrize(("message", "joints"), JOINTS.items())
def test_joints_that_no_robot_has_are_told(tmp_path, message, joints):
  with pytest.raises(ValueError, match=rf"robot\.urdf: {message}"):
    read_urdf(urdf(tmp_path / "robot.urdf", *joints))


def test_a_limit_of_speed_that_no_joint_reaches_is_none(tmp_path):
  text = SERVO.replace("<mimic joint='{2}'/>", "")
  path = urdf(tmp_path / "robot.urdf", text.format("b", "1e300"), text.format("c", "1"))
  spec = read_urdf(path, gains=(1.0, 1.0))
  kinds = [actuator.biastype == mjtBias.mjBIAS_AFFINE for actuator in spec.actuators]
  assert kinds == [True, False]
