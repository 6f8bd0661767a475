"""Text of a URDF file as its robot: namespaces and encodings as files have them, and macros of xacro."""

import contextlib
import io
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias
from xml.etree import ElementTree as ET
from xml.parsers import expat

from physics.mesh_files import Packages, find_package, no_file

Element: TypeAlias = ET.Element

MACROS = ".xacro"
LONGEST = 30.0  # [s] that macros take: those of real robots take a few
HIDDEN = ("_", "ag_", "co_", "cr_", "f_", "gi_", "mro", "tb_")  # begins of names that lead into Python itself
PARTS = {"robot": ("link", "joint", "mujoco"), "link": ("inertial", "collision")}  # that move or collide


def read_robot(path: Path, packages: Packages) -> Element:
  """Return the robot of a file, reduced to what moves and collides; macros of xacro are expanded.

  Prefixes of names stay as they are written, declared or not. Raises FileNotFoundError and ValueError.
  """
  if not path.is_file():
    raise no_file(path)
  content = path.read_bytes()
  plain = content.replace(b"\0", b"")  # of UTF-16
  if re.search(rb"<xacro:|\$[({]" if path.suffix.lower() == MACROS else rb"<xacro:", plain):
    if plain != content:
      raise ValueError("xacro reads UTF-8 alone: write the file so")
    content = _expanded(path, packages)
  robot = _elements(content)
  if robot.tag != "robot":
    raise ValueError(f"the first element is <{robot.tag}>: a URDF begins with <robot>")
  if robot.find("link") is None:
    raise ValueError("it has no links, so it is no robot: name the file that calls its macros")
  for tag, kept in PARTS.items():
    for element in robot.iter(tag):
      element[:] = [child for child in element if child.tag in kept]
  for compiler in robot.iter("compiler"):
    compiler.attrib.pop("meshdir", None)
  for kind in ("link", "joint"):
    parts = [part for part in robot.iter(kind) if part.get("type") != "fixed"]
    for name, count in Counter(part.get("name") for part in parts).items():
      if count > 1 and name is not None:
        raise ValueError(f"{count} {kind}s have the name {name!r}: give each its own")
  _check_circles(robot)
  return robot


def end_of(joint: Element, kind: str) -> str:
  """Return the name of the link at an end of a joint, which is its `parent` or its `child`."""
  end = joint.find(kind)
  return "" if end is None else end.get("link", "")


def _check_circles(robot: Element) -> None:
  """Raise ValueError if links are fixed, or joints mimic each other, in a circle."""
  held, mimics = dict[str, list[str]](), dict[str, list[str]]()
  for joint in robot.iter("joint"):
    if joint.get("type") == "fixed":
      held[end_of(joint, "child")] = [end_of(joint, "parent")]
    elif (mimic := joint.find("mimic")) is not None and mimic.get("joint") != joint.get("name"):
      mimics[joint.get("name", "")] = [mimic.get("joint", "")]
  for chains, mistake in ((held, "link {!r} is fixed to"), (mimics, "joint {!r} mimics")):
    try:
      TopologicalSorter(chains).prepare()
    except CycleError as error:
      names = " and ".join(map(repr, sorted({*error.args[1]})[1:]))
      raise ValueError(f"{mistake.format(min(error.args[1]))} itself, by way of {names}") from error


def _elements(content: bytes) -> Element:
  builder, parser = ET.TreeBuilder(), expat.ParserCreate()
  parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
  try:
    parser.Parse(content, True)
  except (expat.ExpatError, LookupError, ValueError) as error:  # the last two are of unknown encodings
    raise ValueError(f"{error}: this is not XML") from error
  return builder.close()


def _expanded(path: Path, packages: Packages) -> bytes:
  """Return the text of a file of xacro after its macros, with the defaults of its arguments."""
  try:
    import xacro  # noqa: PLC0415 (most files do without it)
    from xacro import substitution_args  # noqa: PLC0415
  except ImportError as error:
    raise ValueError("xacro expands such files: pip install 'gpurobot[urdf]'") from error

  def find(package: str) -> str:
    return str(find_package(package, path.parent, packages))

  xacro.eval = substitution_args.eval = _evaluated
  xacro._global_symbols = xacro.create_global_symbols()  # an expression of another file may have changed them
  for name in ("type", "vars"):  # they give what those names give
    dict.pop(xacro._global_symbols["python"], name, None)
  asked, substitution_args._eval_find = substitution_args._eval_find, find  # without an installed ROS
  tracer = sys.gettrace()
  sys.settrace(_until(time.monotonic() + LONGEST))
  try:
    with contextlib.redirect_stderr(io.StringIO()):  # its advice to authors of files
      return xacro.process_file(str(path), mappings={}).documentElement.toxml().encode()
  except Exception as error:  # it passes on any exception of the expressions in a file
    cause = getattr(error, "exc", None)
    if isinstance(cause, FileNotFoundError):
      raise ValueError(f"xacro: {cause}") from error
    value = "if it lacks an argument, include it in a file with <xacro:arg name='...' default='...'/>"
    raise ValueError(f"xacro: {error}; {value}") from error
  finally:
    sys.settrace(tracer)
    substitution_args._eval_find = asked


def _until(end: float) -> Callable[[FrameType, str, Any], Any]:
  """Return a function that stops macros that call each other without end, and loops in an expression.

  It raises in xacro and in expressions alone: Python ignores an exception where an object is deleted, and
  traces no further.
  """

  def trace(frame: FrameType, _event: str, _arg: Any) -> Any:
    file = frame.f_code.co_filename
    expression = not file.endswith(".py")
    if time.monotonic() > end and (expression or Path(file).parent.name == "xacro"):
      raise ValueError(f"its macros take longer than {LONGEST:g} s")
    return trace if expression else None  # each step of an expression

  return trace


def _evaluated(expression: str | CodeType, *scopes: Any) -> Any:
  """Return the value of an expression in a file; raise ValueError if it could run more than that.

  By names such as these an expression leaves the few functions that xacro gives it.
  """
  codes = [compile(expression, "", "eval") if isinstance(expression, str) else expression]
  for code in codes:  # and those in it, which the loop meets later
    if bad := [name for name in code.co_names if name.startswith(HIDDEN)]:
      raise ValueError(f"an expression uses {bad[0]}, which may run any code")
    codes += [part for part in code.co_consts if isinstance(part, CodeType)]
  return eval(codes[0], *scopes)
