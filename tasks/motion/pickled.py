"""Arrays of a pickle file, read without running code.

A pickle is a program: it calls functions of any installed module, and sets the state of their results.
NumPy believes such a state, so that a wrong one reads and writes beyond an array. This reader knows the few
names that arrays need, and puts functions of its own in their place, which check types, shapes and contents.
"""

import io
import math
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import SettingError

COMPRESSED = b"x"  # first byte of what joblib has compressed; no pickle of a dictionary begins with it
MOST = 10_000_000  # numbers in lists; a few bytes can say of lists in lists that they hold any number


class _Type:
  """Type of numbers or words; its state says the byte order."""

  def __init__(self, code: str, *_: Any) -> None:
    if not re.fullmatch(r"[biufUS]\d{1,6}", code):
      raise pickle.UnpicklingError(f"it holds an array of type {code} and not only numbers and words")
    self.dtype = np.dtype(code)


class _Array:
  """Array; its state has all of it."""

  def __init__(self, *_: Any) -> None:
    self.values = np.empty(0)

  def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
    return self.values


def _array(content: bytes, kind: _Type, shape: Any, order: Any = "C", axes: Any = None) -> NDArray[Any]:
  """Return an array; raise UnpicklingError if its content has not the size of its header."""
  if not {*map(type, shape)} <= {int} or math.prod(shape) * kind.dtype.itemsize != len(content):
    raise pickle.UnpicklingError(f"it holds an array of {len(content)} bytes and of another shape")
  array = np.frombuffer(content, kind.dtype).reshape(shape, order="F" if order == "F" else "C")
  return array if axes is None else array.transpose(axes)


# What pickles of arrays name, by NumPy 1 and 2, and by protocols up to 5, and what stands for it.
ARRAYS: dict[str, Any] = {
  "numpy.core.multiarray._reconstruct": _Array,
  "numpy.core.multiarray.scalar": lambda kind, content: _array(content, kind, ()),
  "numpy.core.numeric._frombuffer": _array,
  "numpy.ndarray": None,  # an argument
  "numpy.dtype": _Type,
  "_codecs.encode": lambda text, _: text.encode("latin1"),  # bytes, which protocol 2 writes as text
}
PLAIN = (bool, int, float, str, bytes, _Array, np.ndarray)


class _Words(dict[Any, Any]):
  """Dictionary without tuples as keys: the hash of one in many others overflows the stack."""

  def __setitem__(self, key: Any, value: Any) -> None:
    if isinstance(key, tuple):
      raise pickle.UnpicklingError("it holds a dictionary by tuples")
    super().__setitem__(key, value)


def _refuse(_: Any) -> None:
  raise pickle.UnpicklingError("it holds more than arrays")


def _build(unpickler: Any) -> None:
  """Set the state of an array or a type, and of nothing else."""
  state, made = unpickler.stack.pop(), unpickler.stack[-1]
  if isinstance(made, _Type):
    made.dtype = made.dtype.newbyteorder(state[1])
  elif isinstance(made, _Array):
    _version, shape, kind, fortran, content = state
    made.values = _array(content, kind, shape, "F" if fortran else "C")
  else:
    _refuse(unpickler)


class _Arrays(pickle._Unpickler):
  """Unpickler of numbers, words, containers and arrays; the one in C reserves what memory a file says."""

  dispatch: ClassVar[dict[int, Any]] = {
    **pickle._Unpickler.dispatch,
    **dict.fromkeys(pickle.DICT + pickle.EMPTY_SET + pickle.FROZENSET, _refuse),
    pickle.EMPTY_DICT[0]: lambda self: self.append(_Words()),
    pickle.BUILD[0]: _build,
    pickle.BYTEARRAY8[0]: pickle._Unpickler.dispatch[pickle.BINBYTES8[0]],  # reads before it reserves
  }

  def find_class(self, module: str, name: str) -> Any:
    """Return what stands for a name; raise UnpicklingError unless an array needs it."""
    known = f"{module.replace('numpy._core', 'numpy.core')}.{name}"
    if known not in ARRAYS:
      raise pickle.UnpicklingError(f"it holds {module}.{name} and not only arrays")
    return ARRAYS[known]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
  """Return the arrays, numbers and words of a pickled dictionary, and its lists of them as arrays.

  Other values are left out. Raises SettingError in one line if the file is broken, or names anything else.
  """
  content = b""
  try:
    content = path.read_bytes()
    found = _Arrays(io.BytesIO(content)).load()
    return {str(name): np.asarray(value) for name, value in found.items() if _is_plain(value)}
  except Exception as error:  # broken pickles raise exceptions of any kind
    why = _remedy(path, content, str(error) or type(error).__name__)
    raise SettingError(f"{path} cannot be read: {why}") from error


def _is_plain(value: Any) -> bool:
  """Return whether a value is a number, word or array, or a list of such or of lists of such."""
  if not isinstance(value, list | tuple):
    return isinstance(value, PLAIN)
  rows = [part if isinstance(part, list | tuple) else [part] for part in value]
  if sum(map(len, rows)) > MOST:
    return False
  parts = [part for row in rows for part in row]
  return all(isinstance(part, PLAIN) for part in parts) and sum(map(np.size, parts)) <= MOST


def _remedy(path: Path, content: bytes, error: str) -> str:
  """Return why a pickle is not read, and what to write instead."""
  if content.startswith(COMPRESSED) or "joblib." in error:
    arrays = f"next(iter(joblib.load('{path}').values()))"
    return (
      "it is of joblib, whose files may run code; if you trust it, write its motion as .npz: "
      f"numpy.savez('{path.with_suffix('.npz')}', **{arrays})"
    )
  return f"{error}. A .pkl is read if it is a dictionary of arrays; write it as .npz"
