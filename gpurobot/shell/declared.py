"""Settings that a module declares, without its other code and the libraries that this code imports.

The help of a program and the completion of its keys need settings alone, but the modules that declare them
import torch and others, which takes seconds. tests/gpurobot/shell/test_declared.py compares with the modules.
"""

import ast
import functools
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

OWN = ("gpurobot", "physics", "tasks")  # packages to read like this; others are imported


@functools.cache
def read(name: str) -> ModuleType:
  """Return a module by its dotted name; it runs only the statements of requested names and their needs.

  A module that is already imported is returned unchanged.
  """
  return sys.modules.get(name) or _Declared(name)


class _Declared(ModuleType):
  """Module that runs a statement when a name it binds is requested; its classes have no methods."""

  def __init__(self, name: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
      raise ModuleNotFoundError(f"there is no module '{name}'", name=name)
    tree = ast.parse(Path(spec.origin).read_text())
    super().__init__(name, ast.get_docstring(tree))
    self.__file__ = spec.origin
    self._statements = {bound: statement for statement in tree.body for bound in _bound(statement)}

  def __getattr__(self, name: str) -> Any:
    """Run the statement that binds a name, after the statements that it refers to."""
    statement = self.__dict__.get("_statements", {}).pop(name, None)
    if statement is None:
      raise AttributeError(f"module '{self.__name__}' declares no '{name}'")
    if isinstance(statement, ast.Import | ast.ImportFrom):
      vars(self)[name] = _imported(statement, name)
      return vars(self)[name]
    if isinstance(statement, ast.ClassDef):
      statement.body = [part for part in statement.body if not isinstance(part, ast.FunctionDef)]
    for node in ast.walk(statement):
      if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self._statements:
        getattr(self, node.id)
    exec(compile(ast.Module([statement], []), str(self.__file__), "exec"), vars(self))
    return vars(self)[name]


def _bound(statement: ast.stmt) -> Iterator[str]:
  """Yield the names that a statement of a module binds, if it is of a kind that declares something."""
  match statement:
    case ast.Import(names) | ast.ImportFrom(names=names):
      yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
    case ast.ClassDef(name) | ast.FunctionDef(name):
      yield name
    case ast.Assign(targets):
      parts = (part for target in targets for part in ast.walk(target))
      yield from (part.id for part in parts if isinstance(part, ast.Name))
    case ast.AnnAssign(ast.Name(name)):
      yield name


def _imported(statement: ast.Import | ast.ImportFrom, name: str) -> Any:
  """Return what an import binds to a name."""
  alias = next(alias for alias in statement.names if (alias.asname or alias.name.partition(".")[0]) == name)
  if isinstance(statement, ast.Import):
    return _module(alias.name if alias.asname else name)
  module = _module(str(statement.module))
  try:
    return getattr(module, alias.name)
  except AttributeError:
    return _module(f"{statement.module}.{alias.name}")


def _module(name: str) -> ModuleType:
  """Return a module: read like this if it is gpurobot's own."""
  return read(name) if name.partition(".")[0] in OWN else importlib.import_module(name)
