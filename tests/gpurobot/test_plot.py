"""Learning curves of runs: which runs make a curve, what tells it from others, and the picture."""

import csv
import json
import math

import numpy as np
import pytest

from gpurobot import plot
from gpurobot.settings.config import ConfigError
from tests.mistakes.told import told

ROWS = [
  {"steps": 100.0, "seconds": 10.0, "return": math.nan, "length": 5.0},
  {"steps": 200.0, "seconds": 20.0, "return": 3.0, "length": 6.0},
  {"steps": 300.0, "seconds": 30.0, "return": 2.0, "length": 7.0},
]


def make_run(folder, rows=ROWS, **settings):
  folder.mkdir(parents=True)
  config = {"task": "toy", "seed": 0, "run_dir": str(folder), "ppo.lr": 1e-3, "ppo.hidden": [8, 8]} | settings
  (folder / "config.json").write_text(json.dumps(config))
  with (folder / "metrics.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
  return folder


def labels(*folders):
  found = plot.curves([run for folder in folders for run in plot.read(folder)])
  return {label: len(runs) for label, runs in found.items()}


def test_seeds_make_one_curve(tmp_path):
  folders = [make_run(tmp_path / str(seed), seed=seed, threads=seed + 1) for seed in range(3)]
  assert labels(*folders) == labels(tmp_path) == {"toy, 3 runs": 3}
  assert labels(folders[0]) == {"toy": 1}


def test_settings_that_differ_tell_curves_apart(tmp_path):
  for seed in (0, 1):
    make_run(tmp_path / "slow" / str(seed), seed=seed)
    make_run(tmp_path / "fast" / str(seed), seed=seed, **{"ppo.lr": 0.1, "ppo.hidden": [4]})
  make_run(tmp_path / "other", task="cartpole", **{"ppo.lr": 7})
  assert labels(tmp_path) == {
    "toy ppo.lr=0.1 ppo.hidden=[4], 2 runs": 2,
    "cartpole": 1,
    "toy ppo.lr=0.001 ppo.hidden=[8,8], 2 runs": 2,
  }


@pytest.mark.parametrize(
  ("name", "text"),
  [("config.json", "[]"), ("config.json", "{}"), ("metrics.csv", "return\nx\n"), ("metrics.csv", "a,b\n1\n")],
)
def test_a_damaged_file_is_named(tmp_path, name, text):
  (make_run(tmp_path / "a") / name).write_text(text)
  with pytest.raises(ValueError, match=rf"^'{tmp_path / 'a' / name}' .*: move it elsewhere$"):
    plot.read(tmp_path)


def test_equal_settings_in_two_places_are_two_curves(tmp_path):
  before, after = (make_run(tmp_path / name / "0").parent for name in ("before", "after"))
  assert labels(before, after) == {f"toy {before}": 1, f"toy {after}": 1}


def test_the_band_has_the_runs_within_as_far_as_all_came():
  other = [row | {"return": row["return"] + 2} for row in ROWS]
  longer = [*other, {"steps": 400.0, "seconds": 40.0, "return": 9.0}]
  grid, low, mean, high = plot.band([ROWS, longer], "return")
  assert (grid[0], low[0], mean[0], high[0]) == (20, 3, 4, 5)
  assert (grid[-1], low[-1], mean[-1], high[-1]) == (30, 2, 3, 4)
  steps, *_ = plot.band([ROWS], "length", "steps")
  assert np.allclose(steps[[0, -1]], (100, 300))
  with pytest.raises(ConfigError, match="or none in the range of the others"):
    plot.band([ROWS, [ROWS[1]], [ROWS[2]]], "return")


def test_means_over_episodes_are_drawn_as_scores():
  """A lucky episode is one of a hundred; a quantity of steps is drawn as it is."""
  numbers = ((1.0, 100.0, 99.0), (2.0, 900.0, 1.0))
  rows = [{"seconds": x, "return": y, "kl": y, "episodes": count} for x, y, count in numbers]
  assert plot.curve(rows, "return", "seconds") == [(1.0, 100.0), (2.0, 108.0)]
  assert plot.curve(rows, "kl", "seconds") == [(1.0, 100.0), (2.0, 900.0)]


def test_a_picture_has_a_panel_for_each_column_and_a_line_for_each_curve(tmp_path, capsys):
  make_run(tmp_path / "seed=0")  # a name like those of a sweep
  make_run(tmp_path / "seed=1", seed=1)
  settings = plot.Plot(y="return,length", x=plot.Progress.steps)
  figure = plot.draw(plot.curves(plot.read(tmp_path)), settings)
  assert [(axes.get_ylabel(), len(axes.lines)) for axes in figure.axes] == [("return", 1), ("length", 1)]
  assert figure.axes[0].get_xlabel() == "environment steps"
  out = tmp_path / "curves.png"
  plot.main([str(tmp_path / "seed=0"), str(tmp_path / "seed=1"), f"out={out}"])
  assert capsys.readouterr().out == f"{out}: 2 runs\n"
  assert out.read_bytes().startswith(b"\x89PNG")
  plot.main([str(tmp_path / "seed=0"), f"out={out}"])
  assert capsys.readouterr().out == f"{out}: 1 run\n"


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (["{}", "y=success"], "a run has no values in 'success', or none in the range"),
    (["{}", "x=iteration"], "no column 'iteration' in toy"),
    (["{}", "x=time"], "x=time is not one of seconds, steps, iteration"),
  ],
)
def test_mistakes_are_told_in_one_line(tmp_path, words, message):
  make_run(tmp_path / "0", [row | {"success": math.nan} for row in ROWS])
  with pytest.raises(ConfigError) as error:
    plot.plot([word.format(tmp_path) for word in words])
  assert str(error.value).startswith(message)


def test_an_ending_that_names_no_format_is_told_in_one_line(tmp_path, capsys):
  line = told(capsys, plot.main, [str(make_run(tmp_path / "0")), f"out={tmp_path}/curves.pgn"])
  assert line.startswith("Format 'pgn' is not supported (supported formats: ")
