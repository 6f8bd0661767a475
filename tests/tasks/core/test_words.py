"""The word that was meant."""

from tasks.core.words import nearest_word, suggestion


def test_the_nearest_word_looks_most_alike_capitals_aside():
  assert nearest_word("ANT", ["cartpole", "ant", "humanoid"]) == "ant"


def test_of_words_as_near_the_first_in_order_is_named():
  assert nearest_word("x", ["c", "a", "b"]) == "a"


def test_a_word_that_is_like_no_other_is_given_no_suggestion():
  assert suggestion("lr", ["ppo.lr", "seed"]) == "; the nearest is 'ppo.lr'"
  assert suggestion("xyzzy", ["ppo.lr", "seed"]) == suggestion("x", []) == ""
