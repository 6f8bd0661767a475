"""Size of a model in MJCF before MuJoCo builds it."""

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

MOST_GEOMS = 20_000  # their pairs are found within minutes
MOST_HEIGHTS = 10**8  # of a height field
# A comment or text, which count for nothing, or a tag. An XML parser would refuse some that MuJoCo's
# accepts, such as two dashes in a comment.
PART = re.compile(
  r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(/?)(\w+)((?:"[^"]*"|'[^']*'|[^'"<>])*+)>""",
  re.DOTALL,
)
ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*("[^"]*"|'[^']*')""")


def check_size(text: str, folder: Path) -> None:
  """Raise ValueError if a model, with the files of `folder` that it includes, takes minutes to build."""
  geoms, copies = 0, [1]
  for tag, given in _tags(text, folder, {""}):
    if tag == "replicate":
      copies.append(copies[-1] * max(_whole(given, "count"), 1))
    elif tag == "/replicate" and len(copies) > 1:
      copies.pop()
    if copies[-1] > MOST_GEOMS:
      raise ValueError(f"replicate: {copies[-1]:,} copies: at most {MOST_GEOMS:,}")
    geoms += copies[-1] * (tag == "geom")
    rows, columns = (_whole(given, name) if tag == "hfield" else 0 for name in ("nrow", "ncol"))
    if rows * columns > MOST_HEIGHTS:
      raise ValueError(f"hfield: {rows} x {columns} heights are {rows * columns:,}: at most {MOST_HEIGHTS:,}")
  check_geoms(geoms)


def check_geoms(count: int) -> None:
  """Raise ValueError if a model has too many geoms."""
  if count > MOST_GEOMS:
    raise ValueError(f"{count:,} geoms: at most {MOST_GEOMS:,}; take a mesh or a height field")


def _tags(text: str, folder: Path, known: set[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
  """Yield the tags of a model with their attributes; a file is included once, as MuJoCo does it."""
  for end, tag, attributes in PART.findall(text):
    given = {name: html.unescape(value[1:-1]) for name, value in ATTRIBUTE.findall(attributes)}
    yield end + tag, given
    file = given.get("file", "") if tag in ("include", "model") else ""
    if file not in known and (path := folder / file).exists():
      known.add(file)
      if not path.is_file():
        raise ValueError(f"{file!r} is no file: name one")
      yield from _tags(path.read_text(errors="ignore"), folder, known)
    if attributes.endswith("/"):
      yield f"/{tag}", {}


def _whole(given: Mapping[str, str], name: str) -> int:
  """Return an attribute as MuJoCo reads it, up to 18 digits; 0 if it is no whole number."""
  number = re.match(r"\s*\+?(\d{1,18})", given.get(name, ""))
  return int(number[1]) if number else 0
