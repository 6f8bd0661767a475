"""Parameters of tests with many instances.

`make test` leaves out those that are marked as thorough, `.ci/run` runs all.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

thorough = pytest.mark.thorough


def first(values: Iterable[Any], chosen: Callable[[Any], bool]) -> list[Any]:
  """Return a parameter for each value, marked as thorough where it is not chosen."""
  return [pytest.param(value, marks=[] if chosen(value) else thorough) for value in values]


def grouped(names: Iterable[str], chosen: Collection[str]) -> list[Any]:
  """Return a parameter for each name, as `first` does.

  One process runs all tests of a name, and builds its kernel once.
  """
  return [
    pytest.param(
      name,
      id=Path(name).stem if name.endswith(".py") else name,
      marks=[pytest.mark.xdist_group(name), *([] if name in chosen else [thorough])],
    )
    for name in names
  ]
