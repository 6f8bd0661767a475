"""Search for the known word nearest to an unknown one."""

import difflib
from collections.abc import Iterable


def nearest_word(word: str, words: Iterable[str]) -> str:
  """Return the word most similar to `word`, ignoring case; if several are, the first in alphabetical order.

  Raises ValueError if `words` is empty.
  """
  return max(
    sorted(words), key=lambda other: difflib.SequenceMatcher(None, word.lower(), other.lower()).ratio()
  )
