"""The word that was meant."""

from tasks.core.words import nearest_word


def test_the_nearest_word_looks_most_alike_capitals_aside():
  assert nearest_word("ANT", ["cartpole", "ant", "humanoid"]) == "ant"


def test_of_words_as_near_the_first_in_order_is_named():
  assert nearest_word("x", ["c", "a", "b"]) == "a"
