"""Arrays of pickles by any NumPy and protocol; crafted ones end in one line and touch no memory."""

import pickle
import re
import struct

import numpy as np
import pytest

from tasks.core.errors import SettingError
from tasks.motion.pickled import read_arrays

PLACE = np.random.default_rng(0).normal(size=(5, 3))
REAL = {
  "place": PLACE,
  "in columns": np.asfortranarray(PLACE),
  "turned": np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
  "big-endian": PLACE.astype(">f4"),
  "integers": np.arange(3),
  "words": np.array(["hip", "knee"]),
  "rate": np.float32(30),
  "number": 30,
  "lists": [[0.0, 1.0]] * 3,
  "list of arrays": [PLACE[0], PLACE[1]],
}


def of_numpy_1(content):
  """A pickle with the names that NumPy 1 writes: they are shorter, so that frames are left out."""
  if content[1] >= 4:
    content = content[:2] + content[11:]
  for module in (b"multiarray", b"numeric"):
    new, old = b"numpy._core." + module, b"numpy.core." + module
    content = content.replace(b"\x8c%c" % len(new) + new, b"\x8c%c" % len(old) + old).replace(new, old)
  return content


@pytest.mark.parametrize(("protocol", "numpy_1"), [(2, True), (3, False), (4, True), (5, False)])
def test_arrays_are_those_that_were_pickled(protocol, numpy_1, tmp_path):
  content = pickle.dumps(REAL | {"nothing": None, "more": {"place": PLACE}}, protocol)
  (tmp_path / "a.pkl").write_bytes(of_numpy_1(content) if numpy_1 else content)
  found = read_arrays(tmp_path / "a.pkl")
  assert found.keys() == REAL.keys()
  for name, values in REAL.items():
    np.testing.assert_array_equal(found[name], values, strict=True)


class Made:
  """What a pickle makes by calling a function, and sets the state of."""

  def __init__(self, *parts):
    self.parts = parts

  def __reduce__(self):
    return self.parts


def kind(code="f8", state=(3, "<", None, None, None, -1, -1, 0)):
  return Made(np.dtype, (code, False, True), state)


def array(shape, dtype, content):
  return Made(np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), (1, shape, dtype, False, content))


def doubled(depth):
  """Nested lists of two, which hold 2 ** depth numbers."""
  values = [1.0, 2.0]
  for _ in range(depth):
    values = [values, values]
  return values


OBJECT = (3, "|", None, ("a",), {"a": (kind("O8", (3, "|", None, None, None, -1, -1, 63)), 0)}, 8, 1, 0)
FAR = (3, "|", None, ("a",), {"a": (kind(), 10**12)}, 8, 1, 0)
ITSELF = []
ITSELF.append(ITSELF)
VALUE = b"\x80\x04}\x8c\x01a"  # a dictionary, and the key of what follows
ATTACKS = {
  "pointers instead of objects": array((1,), kind("V8", OBJECT), b"A" * 8),
  "field beyond the item": array((1,), kind("V8", FAR), b"A" * 8),
  "items larger than their type": array((4,), kind("V8", (3, "|", None, None, None, 10**9, 1, 0)), b"A" * 32),
  "items of negative size": array((4,), kind("S8", (3, "|", None, None, None, -(2**31), 1, 0)), b"A" * 16),
  "array of objects": np.array([[1], {}], object),
  "short content": array((1000, 3), kind(), b"A" * 8),
  "shape that overflows": array((2**32, 2**32), kind(), b""),
  "negative shape": array((-2, -4), kind(), b"A" * 64),
  "shape of words": array(("AAAAAAAA",), kind(), b"A" * 64),
  "type that is none": array((1,), "f8", b"A" * 8),
  "content that is none": array((8,), kind("i1"), ["A"] * 8),
  "state of a type alone": array((1,), np.float64, b"A" * 8),
  "scalar with short content": Made(np._core.multiarray.scalar, (kind(), b"AA")),
  "buffer of another size": Made(np._core.numeric._frombuffer, (b"A" * 8, kind(), (2,), "C")),
  "state of a function": VALUE + b"c_codecs\nencode\n}(\x8c\x0b__globals__}ubs.",
  "state of a class": VALUE + b"cnumpy\nndarray\n}(\x8c\x07__new__Nubs.",
  "call of a method": VALUE + b"cnumpy\nndarray.tofile\n)Rs.",
  "instance by its class": VALUE + b"cnumpy\nndarray\n(K\x01t\x85\x81s.",
  "deep key": VALUE + b"})" + b"\x85" * 200_000 + b"Ns" + b"s.",
  "deep list": VALUE + b"]" * 200_000 + b"a" * 199_999 + b"s.",
  "place in a memo of gigabytes": VALUE + b"Nr\xff\xff\xff\x7fs.",
  "bytes that are not there": VALUE + b"\x96" + struct.pack("<Q", 2**40) + b"s.",
  "lists without end": doubled(60),
  "list of itself": ITSELF,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_crafted_pickle_ends_in_one_line(name, tmp_path):
  """Each is one value: it makes the file unreadable, or is left out as none that a motion can need."""
  attack = ATTACKS[name]
  (tmp_path / "a.pkl").write_bytes(attack if isinstance(attack, bytes) else pickle.dumps({"a": attack}, 4))
  try:
    found = read_arrays(tmp_path / "a.pkl")
  except SettingError as error:
    found, said = {}, str(error)
    assert re.fullmatch(r".*a\.pkl cannot be read: [\w'].*; write it as \.npz", said)
  assert found == {}
