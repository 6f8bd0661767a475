"""Arrays of a pickle file, read without running code.

A pickle can name any function of any installed module, and reading it calls that. This reader knows the few
names that arrays need and refuses all others.
"""

import io
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


COMPRESSED = b"x"  # first byte of what joblib has compressed; no pickle of a dictionary begins with it


class _Arrays(pickle.Unpickler):
  """Unpickler of numbers, words, containers and arrays."""

  def find_class(self, module: str, name: str) -> Any:
    """Return what a pickle names; raise UnpicklingError unless an array needs it."""
    if (module, name) not in ARRAYS:
      raise pickle.UnpicklingError(f"it holds {module}.{name} and not only arrays")
    return super().find_class(module, name)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
  """Return the arrays in a pickled dictionary; raise SettingError in one line if it holds anything else."""
  content = b""
  try:
    content = path.read_bytes()
    found = _Arrays(io.BytesIO(content)).load()
    arrays = {str(name): np.asarray(value) for name, value in dict(found).items()}
  except Exception as error:  # broken pickles raise exceptions of any kind
    raise SettingError(f"{path} cannot be read: {_remedy(path, content, str(error))}") from error
  return arrays


def _remedy(path: Path, content: bytes, error: str) -> str:
  """Return why a pickle is not read, and what to write instead."""
  if content.startswith(COMPRESSED) or "joblib." in error:
    arrays = f"next(iter(joblib.load('{path}').values()))"
    return (
      "it is of joblib, whose files may run code; if you trust it, write its motion as .npz: "
      f"numpy.savez('{path.with_suffix('.npz')}', **{arrays})"
    )
  return f"{error}. A .pkl is read if it is a dictionary of arrays; write it as .npz"
