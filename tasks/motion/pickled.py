"""Arrays of a pickle file, read without running code.

A pickle can name any function of any installed module, and reading it calls that. This reader knows the few
names that arrays need and refuses all others.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import SettingError

# What pickles of arrays name, by NumPy 1 and 2, and by protocols up to 5.
ARRAYS = {
  *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
  *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
  ("numpy", "ndarray"),
  ("numpy", "dtype"),
  ("_codecs", "encode"),
}


class _Arrays(pickle.Unpickler):
  """Unpickler of numbers, words, containers and arrays."""

  def find_class(self, module: str, name: str) -> Any:
    """Return what a pickle names; raise UnpicklingError unless an array needs it."""
    if (module, name) not in ARRAYS:
      raise pickle.UnpicklingError(f"it holds {module}.{name} and not only arrays")
    return super().find_class(module, name)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
  """Return the arrays in a pickled dictionary; raise SettingError in one line if it holds anything else."""
  try:
    with path.open("rb") as file:
      found = _Arrays(file).load()
    arrays = {str(name): np.asarray(value) for name, value in dict(found).items()}
  except Exception as error:  # broken pickles raise exceptions of any kind
    raise SettingError(
      f"{path} cannot be read: {error}. A .pkl is read if it is a dictionary of arrays; write it as .npz"
    ) from error
  return arrays
