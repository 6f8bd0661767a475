"""Text of URDF files: macros of xacro and its packages, prefixes, encodings."""

import contextlib
import math
import re
import sys

import pytest

from physics import urdf_text
from physics.urdf import read_urdf

INERTIAL = """<inertial><mass value="{}"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
JOINT = '<joint name="elbow" type="continuous"><parent link="base"/><child link="arm"/></joint>'
ARM = f'<link name="base"/><link name="arm">{INERTIAL.format(2)}{{}}</link>{JOINT}'
XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
MACRO = f"""<robot {XACRO}><xacro:macro name="rod" params="name mass">
  <link name="${{name}}">{INERTIAL.format("${mass}")}</link></xacro:macro></robot>"""
CALL = """<xacro:arg name="mass" default="3"/><xacro:include filename="$(find my_parts)/rod.xacro"/>
  <link name="base"/><xacro:rod name="arm" mass="${2 * $(arg mass)}"/>"""
CALL += JOINT


def robot(content, attributes="", header=""):
  return f'{header}<robot name="arm" {attributes}>{content}</robot>'


def written(path, text):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)
  return path


@pytest.fixture
def called(tmp_path):
  """Return a file of xacro that calls a macro of a package beside its own, whose folder has another name."""
  pytest.importorskip("xacro")
  written(tmp_path / "all/parts/rod.xacro", MACRO)
  written(tmp_path / "all/parts/package.xml", "<package><name>my_parts</name></package>")
  return written(tmp_path / "arm/urdf/arm.urdf.xacro", robot(CALL, XACRO))


def test_macros_are_expanded_with_packages_that_are_beside(called):
  mj = read_urdf(called, floating=True).compile()
  assert mj.body("arm").mass[0] == 6.0


def test_a_file_that_includes_another_gives_it_arguments(called):
  include = '<xacro:arg name="mass" default="5"/><xacro:include filename="arm.urdf.xacro"/>'
  mine = written(called.with_name("mine.xacro"), robot(include, XACRO))
  assert read_urdf(mine).compile().body("arm").mass[0] == 10.0


def test_a_package_that_is_not_found_is_named(called, tmp_path):
  (tmp_path / "all").rename(tmp_path / "away")
  (tmp_path / "away/parts/package.xml").write_text("<package/>")
  with pytest.raises(
    ValueError, match=r"xacro: no package 'my_parts': give packages={'my_parts': '<folder>'}"
  ):
    read_urdf(called)
  assert read_urdf(called, packages={"my_parts": tmp_path / "away/parts"}).compile().nbody == 2


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (
      "$(arg no)",
      "no; if it lacks an argument, include it in a file with <xacro:arg name=",
    ),
    ("<link", "not well-formed"),
    ("${1 / 0}", "division by zero"),
    ("${(i for i in [1]).gi_frame.f_back}", "an expression uses gi_frame, which may run any code"),
    ("${[i.__class__ for i in [1]]}", "an expression uses __class__"),
    ("${python['vars'](str)}", "vars"),
    ("${python.get('type')(1)}", "NoneType"),
    ("${str.mro()}", "an expression uses mro, which may run any code"),
    ("$(eval 1 if 1 else 2 .gi_frame)", "an expression uses gi_frame"),
    ('<xacro:macro name="a"><xacro:a/></xacro:macro><xacro:a/>', "recursion"),
  ],
)
def test_what_cannot_be_expanded_is_told_in_one_line(called, capfd, content, message):
  with pytest.raises(ValueError, match=rf"{called.name}: .*{re.escape(message)}") as error:
    read_urdf(written(called, robot(content, XACRO)))
  assert "\n" not in str(error.value)
  assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
  "content",
  [
    "".join(
      f'<xacro:macro name="m{i}"><xacro:m{i + 1}/><xacro:m{i + 1}/></xacro:macro>' for i in range(40)
    ) + '<xacro:macro name="m40"/><xacro:m0/>',
    "${[i for i in range(10**12) if not 1]}",
  ],
)  # fmt: skip
def test_macros_without_end_are_told(called, monkeypatch, content):
  monkeypatch.setattr(urdf_text, "LONGEST", 1.0)
  tracer = sys.gettrace()
  with pytest.raises(ValueError, match=r"xacro: .*its macros take longer than 1 s"):
    read_urdf(written(called, robot(content, XACRO)))
  assert sys.gettrace() is tracer


def test_the_end_of_an_object_does_not_end_the_watch():
  """An exception in it would be ignored, and take the watch away."""

  class Ending:
    def __del__(self):
      pass

  one, tracer, watch = Ending(), sys.gettrace(), urdf_text._until(0.0)
  sys.settrace(watch)
  del one
  kept = sys.gettrace()
  sys.settrace(tracer)
  assert kept is watch


def test_macros_in_utf_16_are_told(called):
  called.write_bytes(f'<?xml version="1.0" encoding="utf-16"?>{called.read_text()}'.encode("utf-16"))
  with pytest.raises(ValueError, match=r"arm\.urdf\.xacro: xacro reads UTF-8 alone: write the file so$"):
    read_urdf(called)


def test_macros_in_a_urdf_are_expanded_too(called):
  assert read_urdf(called.rename(called.with_name("arm.urdf"))).compile().body("arm").mass[0] == 6.0


def test_xacro_that_is_missing_is_asked_for(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "xacro", None)
  path = written(tmp_path / "arm.xacro", robot(CALL, XACRO))
  with pytest.raises(ValueError, match=r"xacro expands such files: pip install 'gpurobot\[urdf\]'"):
    read_urdf(path)
  assert read_urdf(written(path, robot(ARM.format("")))).compile().nbody == 2  # without macros


def test_prefixes_need_no_declaration(tmp_path):
  inside = '<drake:proximity_properties drake:mesh="1"/>'
  shape = f'<collision>{inside}<geometry><sphere radius="1"/>{inside}</geometry></collision>'
  path = written(tmp_path / "arm.urdf", robot(ARM.format(shape) + inside))
  assert read_urdf(path).compile().ngeom == 1


def test_an_encoding_is_that_of_the_header(tmp_path):
  text = robot(ARM.format("").replace("elbow", "codo_ñ"), header='<?xml version="1.0" encoding="latin-1"?>')
  (tmp_path / "arm.urdf").write_bytes(text.encode("latin-1"))
  assert read_urdf(tmp_path / "arm.urdf").compile().joint(0).name == "codo_ñ"


@pytest.mark.parametrize("encoding", ["no-such", "utf-7", "base64"])
def test_an_unknown_encoding_is_told(tmp_path, encoding):
  path = written(
    tmp_path / "arm.urdf", robot(ARM.format(""), header=f'<?xml version="1.0" encoding="{encoding}"?>')
  )
  with pytest.raises(ValueError, match=r"arm\.urdf: .*: this is not XML"):
    read_urdf(path)


def test_elements_in_elements_without_end_are_told(tmp_path):
  deep = "<a>" * 20_000 + "</a>" * 20_000
  path = written(tmp_path / "arm.urdf", robot(ARM.format(f"<collision>{deep}</collision>")))
  with pytest.raises(ValueError, match="recursion"):
    read_urdf(path)


def test_an_expression_changes_no_later_file(called):
  for change, pi in (("${math.update(dict(pi=3.0))}", "${math.pi}"), ("", "${math.pi}")):
    content = f'<link name="base{change}"/><link name="arm">{INERTIAL.format(pi)}</link>{JOINT}'
    with contextlib.suppress(ValueError):
      found = read_urdf(written(called, robot(content.replace("baseNone", "base"), XACRO)))
  assert found.compile().body("arm").mass[0] == pytest.approx(math.pi)
