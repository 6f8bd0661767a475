"""Spelling suggestions: the known name that is nearest to an unknown one."""

import difflib
from collections.abc import Collection


def nearest_word(word: str, words: Collection[str]) -> str:
  """Return the word that looks most like the given one; ValueError where there are none."""
  (nearest,) = difflib.get_close_matches(word, words, n=1, cutoff=0.0)
  return nearest
