"""Words: the known one that was meant by an unknown one."""

import difflib
from collections.abc import Iterable


def nearest_word(word: str, words: Iterable[str]) -> str:
  """Return the word that looks most like the given one, capitals aside; of equals the first in order.

  Raises ValueError where there are no words.
  """
  return max(
    sorted(words), key=lambda other: difflib.SequenceMatcher(None, word.lower(), other.lower()).ratio()
  )
