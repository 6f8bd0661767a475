"""Text of a URDF file as its robot: namespaces and encodings as files have them, and macros of xacro."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias
from xml.etree import ElementTree as ET
from xml.parsers import expat

from physics.mesh_files import Packages, find_package, no_file

Element: TypeAlias = ET.Element

MACROS = ".xacro"
HIDDEN = ("_", "ag_", "co_", "cr_", "f_", "gi_", "mro", "tb_")  # begins of names that lead into Python itself
PARTS = {"robot": ("link", "joint", "mujoco"), "link": ("inertial", "collision")}  # that move or collide


def read_robot(path: Path, packages: Packages) -> Element:
  """Return the robot of a file, reduced to what moves and collides; macros of xacro are expanded.

  Prefixes of names stay as they are written, declared or not. Raises FileNotFoundError and ValueError.
  """
  if not path.is_file():
    raise no_file(path)
  content = path.read_bytes()
  if re.search(rb"<xacro:|\$[({]" if path.suffix.lower() == MACROS else rb"<xacro:", content):
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
  return robot


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
    substitution_args._eval_find = asked


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
