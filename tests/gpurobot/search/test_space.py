import math

import numpy as np
import pytest

from gpurobot import sweep
from gpurobot.search.space import Choices, Range, Search, draw, grid
from gpurobot.settings.config import ConfigError
from tests.gpurobot.search.trials import TOY


def space(*words: str) -> dict[str, Choices | Range]:
  return dict(sweep.read([*TOY, *words])[1])


def test_words_are_choices_or_a_range():
  found = space("ppo.lr=log:1e-4..1e-2", "ppo.hidden=[8,8],[4]", "ppo.horizon=4..8", "ppo.gamma=0.9,0.9,0.8")
  assert found["ppo.lr"] == Range(1e-4, 1e-2, log=True, whole=False)
  assert found["ppo.horizon"] == Range(4, 8, log=False, whole=True)
  assert found["ppo.hidden"] == Choices(("[8,8]", "[4]"))
  assert found["ppo.gamma"] == Choices(("0.9", "0.8"))
  assert found["seed"] == Choices(("0",))
  assert isinstance(found["task"], Choices)  # a path, whatever dots it has


def test_a_range_reaches_its_ends_and_no_further():
  linear, log = Range(2.0, 4.0, log=False, whole=False), Range(1e-4, 1e-2, log=True, whole=False)
  assert [float(linear.at(unit)) for unit in (0.0, 0.25, 1 - 1e-9)] == [2.0, 2.5, 4.0]
  assert [float(log.at(unit)) for unit in (0.0, 0.5, 1 - 1e-9)] == [1e-4, 1e-3, 1e-2]
  whole = Range(4, 6, log=False, whole=True)
  counts = [[whole.at(unit) for unit in np.linspace(0, 1, 300, endpoint=False)].count(word) for word in "456"]
  assert max(abs(count - 100) for count in counts) <= 1


def test_a_perturbed_number_stays_in_its_range():
  """A fifth of gamma would be more than its range, and lead from anywhere to an end."""
  gamma, rate = Range(0.95, 0.995, log=False, whole=False), Range(1e-4, 1e-2, log=True, whole=False)
  assert [gamma.perturbed("0.97", up=up) for up in (False, True)] == ["0.961", "0.979"]
  assert [gamma.perturbed("0.951", up=False), gamma.perturbed("0.99", up=True)] == ["0.95", "0.995"]
  assert [rate.perturbed("0.001", up=up) for up in (False, True)] == ["0.0008", "0.0012"]
  assert [rate.perturbed("0.0001", up=False), rate.perturbed("0.01", up=True)] == ["0.0001", "0.01"]


def test_samples_fill_the_space_and_depend_on_the_seed_alone():
  wanted = space("ppo.lr=log:1e-4..1e-2", "ppo.gamma=0.5..0.9", "ppo.horizon=4,8")
  for search in (Search.random, Search.sobol):
    first = draw(wanted, search, 64, 0)
    assert first == draw(wanted, search, 64, 0) != draw(wanted, search, 64, 1)
    rates, gammas = (np.array([float(one[key]) for one in first]) for key in ("ppo.lr", "ppo.gamma"))
    assert np.log10(rates).mean() == pytest.approx(-3, abs=0.25)
    assert gammas.mean() == pytest.approx(0.7, abs=0.05)
    assert {one["ppo.horizon"] for one in first} == {"4", "8"}
    assert {one["max_iterations"] for one in first} == {"1"}
  # Of 64 points of a Sobol sequence, each of 8 equal parts has 8 in each dimension (Sobol 1967).
  parts = np.floor(8 * (gammas - 0.5) / 0.4 - 1e-3).clip(0).astype(int)
  assert np.abs(np.bincount(parts, minlength=8) - 8).max() <= 1
  small = draw(space("ppo.horizon=4,8"), Search.random, 10, 0)
  assert len(small) == 2  # the same setting is no second sample


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (["search=random"], "search=random needs a setting with several values or a range, such as"),
    (["search=pbt", "ppo.gamma=0.9..1.01"], "ppo.gamma=1.01 is out of range; the nearest is 1"),
    (["ppo.lr=1e-4..x"], "ppo.lr=x is not a number"),
    (["ppo.squash=0..1"], "ppo.squash=0 is not true or false"),
    (["ppo.lr=0.1..2", "search=random", "ppo.gamma=0.9..3"], "ppo.gamma="),
    (["search=pbt", "ppo.horizon=4..8"], "search=pbt perturbs real numbers of the algorithm; ppo.horizon is"),
    (["search=pbt", "seed=0,1"], "search=pbt perturbs ranges, and seed has several values; write one"),
    (["search=pbt"], "search=pbt perturbs ranges; write one or more, such as ppo.lr=log:1e-4..1e-2"),
    (["search=pbt", "samples=1", "ppo.gamma=0.9..0.99"], "search=pbt needs two members or more"),
    (["search=pbt", "prune=median", "ppo.gamma=0.9..0.99"], "search=pbt replaces its worst members itself"),
  ],
)
def test_bad_spaces_are_told_in_one_line(tmp_path, words, message):
  with pytest.raises(ConfigError) as error:
    sweep.plan([*TOY, f"folder={tmp_path}", *words])
  assert str(error.value).startswith(message)


def test_a_grid_is_every_combination():
  assert list(grid({"a": Choices(("1", "2")), "b": Choices(("3",))})) == [
    {"a": "1", "b": "3"},
    {"a": "2", "b": "3"},
  ]
  assert math.prod(len(own.words) for own in space().values() if isinstance(own, Choices)) == 1
