"""Comments of declared fields: `name: kind  # [shape] [unit] words`."""

import inspect
import re
import typing
from typing import Any, NamedTuple


class Declared(NamedTuple):
  kind: Any
  shape: tuple[str, ...] | None  # in sizes and numbers
  text: str  # what follows the shape

  @property
  def unit(self):
    """What stands in the brackets that follow the shape; None without any."""
    found = re.search(r"\[([^\]]+)\]", self.text)
    return found and found[1]

  def shape_in(self, sizes):
    """Return the shape, with sizes looked up as attributes."""
    return tuple(int(size) if size.isdigit() else getattr(sizes, size) for size in self.shape)


def declared(owner, *scalars):
  """Return what a class declares, by name; the kinds named are scalars, which have no shape."""
  source, fields = inspect.getsource(owner), {}
  for name, kind in typing.get_type_hints(owner).items():
    comment = re.search(rf"^  {name}: [^#\n]*(?:# (.*))?$", source, re.MULTILINE)[1] or ""
    shaped = None if kind in scalars else re.match(r"\[([^\]]*)\](.*)", comment)
    shape = tuple(shaped[1].split(", ")) if shaped else None
    fields[name] = Declared(kind, shape, shaped[2] if shaped else comment)
  return fields
