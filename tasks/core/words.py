"""Search for the known word nearest to an unknown one."""

import difflib
from collections.abc import Iterable

ALIKE = 0.5  # similarity, 0 ... 1, from which a word is a likely slip of another: ppo.lr for lr


def nearest_word(word: str, words: Iterable[str]) -> str:
  """Return the word most similar to `word`, ignoring case; if several are, the first in alphabetical order.

  Raises ValueError if `words` is empty.
  """
  return max(sorted(words), key=lambda other: _similarity(word, other))


def suggestion(word: str, words: Iterable[str]) -> str:
  """Return the end of an error message, "; the nearest is 'x'", or "" if no word is like `word`."""
  alike = [other for other in words if _similarity(word, other) >= ALIKE]
  return f"; the nearest is '{nearest_word(word, alike)}'" if alike else ""


def _similarity(word: str, other: str) -> float:
  word, other = word.lower(), other.lower()
  return 1.0 if other.endswith(f"_{word}") else difflib.SequenceMatcher(None, word, other).ratio()
