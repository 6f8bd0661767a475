import math

import pytest

from gpurobot.run import returns
from gpurobot.run.returns import Returns, Score, resampled, scores


def made(*values: float, episodes: float = returns.WINDOW) -> Returns:
  found = Returns()
  for index, value in enumerate(values):
    found.add(value, episodes, 10 * index, float(index))
  return found


def test_levels_are_noted_when_they_are_first_reached():
  found = made(-5.0, 35.0, 20.0, math.nan, 110.0)
  assert {level: found.reached[level] for level in ("9", "30", "40", "100")} == {
    "9": 1,
    "30": 1,
    "40": 4,
    "100": 4,
  }
  assert "200" not in found.reached


def test_the_last_and_the_best_are_kept_and_nan_changes_neither():
  found = made(-5.0, 35.0, 20.0, math.nan)
  assert (found.score.mean, found.best, found.best_steps) == (20.0, 35.0, 10)
  assert (made().score.mean, made().best) == (None, None)


def test_the_best_is_a_mean_over_the_last_rows_with_enough_episodes_together():
  found = made(0.0, 90.0, 30.0, 60.0, 40.0, episodes=returns.WINDOW / 2)
  assert (found.score.mean, found.best, found.best_steps, found.best_episodes) == (50.0, 60.0, 20, 100)
  assert made(90.0, 30.0, 30.0, 0.0, episodes=returns.WINDOW - 1).best == 60.0  # of two rows each
  assert made(9.0, episodes=returns.WINDOW - 1).best is None


def test_a_lucky_episode_reaches_no_level_and_is_no_score():
  found = made(*[100.0] * 9, episodes=11)
  found.add(900.0, 1, 100, 1.0)
  assert found.score.mean == found.best == 108.0
  assert "200" not in found.reached


@pytest.mark.parametrize(
  ("column", "score"),
  [
    ("return", (99 * 2 + 6) / 100),  # a mean over the episodes
    ("velocity_error", (99 * 2 + 5 + 6) / 101),  # also of the row without an episode
    ("greedy_return", (99 * 2 + 6) / 100),
  ],
)
def test_a_score_is_of_the_last_rows_with_enough_episodes(column, score):
  numbers = ((9.0, 50), (2.0, 99), (math.nan if column != "velocity_error" else 5.0, 0), (6.0, 1))
  rows = [{column: str(value), "episodes": str(episodes)} for value, episodes in numbers]
  assert [*scores(rows, column)][-1].mean == pytest.approx(score)
  assert next(scores(rows, column)).mean == 9.0  # all rows, as long as they have fewer
  assert Score().mean is None
  assert [*scores([{column: "3"}, {column: "4"}], column)][-1].mean == 4.0  # an old log


@pytest.mark.parametrize(("values", "heading"), [
  (range(40), "rising"), (range(0, -40, -1), "falling"), ([0] * 40, "level"),
  ([*range(40), *[40] * 60], "level"), (range(returns.FEWEST - 1), ""),
])  # fmt: skip
def test_the_last_tenth_says_where_the_returns_are_heading(values, heading):
  assert made(*values).heading == heading


def test_the_curve_is_drawn_from_the_lowest_to_the_highest():
  assert made(1, 2, 3, 4, 5, 6, 7, 8).sparkline(8) == Returns.BARS
  assert made(1, 1, 8, 8).sparkline(2) == "▁█"
  assert made(5).sparkline(8) == "▁"
  assert made().sparkline(8) == ""


def test_a_long_run_keeps_a_bounded_curve_of_all_its_rows():
  found = made(*range(10 * returns.MOST_POINTS))
  assert len(found._points) < returns.MOST_POINTS
  assert found._points == sorted(found._points)
  assert found._points[0] == pytest.approx((found._each - 1) / 2)
  assert found.sparkline(8) == Returns.BARS


def test_points_are_means_of_equal_parts():
  assert resampled([1, 3, 5, 7], 2) == [2, 6]
  assert resampled([1, 2, 3], 3) == [1, 2, 3]
