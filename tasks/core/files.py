"""Python files as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tasks.core.errors import task_errors


def load_file(path: Path) -> ModuleType:
  """Return the module of a `.py` file, which runs at the first time; raise TaskError if it fails."""
  # The full path distinguishes files of the same name; dataclasses look their module up in sys.modules.
  module_name = "task_file_" + "_".join(path.resolve().with_suffix("").parts[1:])
  if module_name not in sys.modules:
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
      with task_errors(lambda: [str(path.resolve())]):
        spec.loader.exec_module(module)
    except BaseException:
      del sys.modules[module_name]
      raise
  return sys.modules[module_name]
