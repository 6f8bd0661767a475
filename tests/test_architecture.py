"""The drawing of the architecture is that of the imports, and what pages for contributors name is there."""

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.test_docs import PAGES
from tests.test_house import ROOT, SHIPPED, arrows

PAGE = PAGES[Path("docs/architecture.md")]
DRAWING = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)[0]
Arrows = set[tuple[str, str]]


def boxes() -> dict[str, str]:
  """Return each file and folder that the drawing names, and all files of a folder as `*.py`, with its box."""
  found, folder = {}, ""
  for line in map(str.strip, DRAWING.splitlines()):
    if part := re.fullmatch(r'subgraph \w+ \["(.*)"\]', line):
      folder = part[1]
    elif line == "end":
      folder = ""
    elif box := re.fullmatch(r'(\w+)\["(.*)"\]', line):
      found |= {folder + name: box[1] for name in re.findall(r"[\w*]+(?:\.py|/)", box[2])}
  return found


BOXES = boxes()


def named(path: str) -> str:
  """Return by what name of the drawing a file is in it; of what it lacks, the file's path."""
  folder = path.rpartition("/")[0]
  return next((name for name in (path, f"{folder}/", f"{folder}/*.py") if name in BOXES), path)


def drawn() -> Arrows:
  """Return the arrows of the drawing; `a & b --> c & d` are four."""
  lines = [line.strip().split(" --> ") for line in DRAWING.splitlines() if " --> " in line]
  return {(a, b) for tails, heads in lines for a in tails.split(" & ") for b in heads.split(" & ")}


def shortest(found: dict[str, set[str]]) -> Arrows:
  """Return the arrows beside which there is no longer way."""
  below: dict[str, set[str]] = {}
  for box in TopologicalSorter(found).static_order():
    below[box] = found[box].union(*(below[head] for head in found[box]))
  return {(a, b) for a, heads in found.items() for b in heads if not any(b in below[c] for c in heads)}


def test_every_room_is_drawn() -> None:
  assert {named(path) for path in SHIPPED} == set(BOXES)


def test_arrows_are_those_of_the_imports() -> None:
  real, shown = shortest(arrows(lambda path: BOXES[named(path)])), drawn()
  assert (sorted(real - shown), sorted(shown - real)) == ([], []), "arrows to add, arrows to leave out"


@functools.cache
def definitions(path: str) -> set[str]:
  """Return the functions, classes and methods (as Class.method) of a file."""
  found = set()
  for node in ast.parse((ROOT / path).read_text()).body:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
      found.add(node.name)
    if isinstance(node, ast.ClassDef):
      found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
  return found


def passages(page: str) -> Iterator[list[str]]:
  """Yield what stands between backticks in each paragraph, point of a list, and row of a table."""
  text = re.sub(r"```.*?```", "", PAGES[Path(page)], flags=re.DOTALL)
  for passage in re.split(r"\n\n|\n(?=\s*(?:- |\d+\. |\|))", text):
    yield re.findall(r"`([^`]+)`", passage)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_and_functions_are_there(page: str) -> None:
  for spans in passages(page):
    paths = [span for span in spans if re.fullmatch(r"[\w./-]+/[\w./-]*|\w+\.py", span)]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    known = {name for path in paths if path.endswith(".py") for name in definitions(path)}
    functions = {span[:-2] for span in spans if re.fullmatch(r"\w[\w.]*\(\)", span)}
    assert functions <= known, f"of {paths}: {functions - known}"
