"""Parameters of tests with many instances."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest


def grouped(names: Iterable[str]) -> list[Any]:
  """Return a parameter for each name; one process runs all tests of a name, and builds its kernel once."""
  return [
    pytest.param(
      name, id=Path(name).stem if name.endswith(".py") else name, marks=pytest.mark.xdist_group(name)
    )
    for name in names
  ]
