import dataclasses
import json
import math
import os
import re
from fractions import Fraction

import pytest

from gpurobot import sweep
from gpurobot.settings.config import ConfigError, to_dict
from gpurobot.shell import cli
from tests.gpurobot.search.trials import TOY, finish


def test_jobs_share_the_cores(tmp_path, monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
  for words, threads in ((["jobs=2"], 4), (["jobs=16"], 1), (["jobs=2", "threads=3"], 3)):
    _, [run] = sweep.plan([*TOY, *words, f"folder={tmp_path}"])
    assert run.values["threads"] == str(threads)
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  assert "threads" not in run.values


def test_the_seeds_of_a_setting_are_checked_together(tmp_path, monkeypatch):
  calls, parse = [], cli.parse
  monkeypatch.setattr(cli, "parse", lambda *given: (calls.append(given), parse(*given))[1])
  words = [*TOY, "ppo.lr=1.5e-3,2.5e-3", f"folder={tmp_path}"]
  trials = sweep.plan([*words, "seed=0,1,2"])[1]
  assert len(calls) == 1 + 2
  assert [(trial.config.ppo.lr, trial.config.seed) for trial in trials] == [
    (lr, seed) for lr in (1.5e-3, 2.5e-3) for seed in range(3)
  ]
  assert len({trial.config.run_dir for trial in trials}) == 6
  with pytest.raises(ConfigError, match=r"^seed=-1 is out of range; the nearest is 0$"):
    sweep.plan([*words, "seed=0,-1"])


def test_a_folder_of_another_run_is_not_taken_for_this_one_but_part_by_part(tmp_path):
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  run.folder.mkdir()
  (run.folder / "config.json").write_text(json.dumps(to_dict(run.config) | {"resume": "here"}))
  assert len(sweep.plan([*TOY, f"folder={tmp_path}"])[1]) == 1
  with pytest.raises(ConfigError, match=r"holds a run with another ppo\.gamma; choose another folder="):
    sweep.plan([*TOY, f"folder={tmp_path}", "ppo.gamma=0.5"])
  with pytest.raises(ConfigError, match="holds a run with another max_iterations"):
    sweep.plan([*TOY, "max_iterations=4", f"folder={tmp_path}"])
  run.begin_parts()
  assert len(sweep.plan([*TOY, "max_iterations=4", f"folder={tmp_path}"])[1]) == 1


def test_an_interrupted_run_is_continued(tmp_path):
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  assert not any(word.startswith("resume=") for word in run.command())
  finish(run, 1.0)
  assert run.is_finished()
  summary = json.loads((run.folder / "summary.json").read_text())
  (run.folder / "summary.json").write_text(json.dumps(summary | {"iterations": 0}))
  (run.folder / "checkpoint.pt").touch()
  assert not run.is_finished()
  assert f"resume={run.folder}" in run.command()


@pytest.mark.parametrize(
  "text", ["{", "[]", "{}", '"seed": "a"', '"seed": true', '"steps": NaN', f'"return": 1{"0" * 400}']
)
def test_a_damaged_summary_is_named(tmp_path, text):
  _, [run] = sweep.plan([*TOY, f"folder={tmp_path}"])
  finish(run, 1.0)
  path = run.folder / "summary.json"
  path.write_text(f"{path.read_text()[:-1]}, {text}}}" if text.startswith('"') else text)
  with pytest.raises(ValueError, match=rf"^'{re.escape(str(run.folder))}/summary.json' is .*: move it elsew"):
    run.is_finished()


def test_a_part_of_a_trial_ends_at_a_part_of_its_limits(tmp_path):
  _, [trial] = sweep.plan([*TOY, "max_iterations=10", "max_seconds=8", f"folder={tmp_path}"])
  part = trial.until(Fraction(1, 4))
  assert part.limits == {"max_iterations": 3, "max_seconds": 2.0}  # rounded up
  assert {"max_iterations=3", "max_seconds=2.0"} <= set(part.command())
  assert {"max_iterations=10", "max_seconds=8"} <= set(trial.command())
  finish(trial, -2.5, iterations=2)
  assert (part.is_finished(), trial.is_finished()) == (True, False)  # 2 of 3 iterations, but 3 s of 2 s


def test_scores_of_parts_are_kept_as_they_were(tmp_path):
  _, [trial] = sweep.plan([*TOY, "max_iterations=2", f"folder={tmp_path}"])
  first = trial.until(Fraction(1, 2))
  first.begin_parts()
  first.keep_score()
  assert trial.scores() == {}  # it has not run
  finish(trial, -2.5)
  first.keep_score()
  finish(trial, -1.5, iterations=2)
  first.keep_score()
  assert trial.scores() == {Fraction(1, 2): -2.5}
  finish(trial, None)
  dataclasses.replace(first, part=Fraction(1, 3)).keep_score()
  assert trial.scores()[Fraction(1, 3)] == -math.inf


@pytest.mark.parametrize(("mode", "sign"), [("max", 1), ("min", -1)])
def test_a_trial_is_scored_by_its_last_hundred_episodes(tmp_path, mode, sign):
  """One lucky episode in the last row is one of them, and reaches no level."""
  words = [f"folder={tmp_path}", "metric=success", f"mode={mode}", f"level={sign * 0.5}"]
  _, [trial] = sweep.plan([*TOY, *words])
  finish(trial, 1.0)
  rows = ((1, 1.0, 1), (2, 0.1, 60), (3, 0.3, 60), (4, 0.9, 1))
  lines = (f"{second},0,{sign * success},{episodes}\n" for second, success, episodes in rows)
  (trial.folder / "metrics.csv").write_text("seconds,return,success,episodes\n" + "".join(lines))
  assert trial.score() == pytest.approx((60 * 0.1 + 60 * 0.3 + 0.9) / 121)
  assert trial.result()["seconds_to_level"] is None


def test_parts_that_were_compared_by_another_metric_are_refused(tmp_path):
  words = [*TOY, "max_iterations=2", f"folder={tmp_path}"]
  _, [trial] = sweep.plan(words)
  trial.begin_parts()
  trial.begin_parts()
  _, [other] = sweep.plan([*words, "metric=success"])
  with pytest.raises(ConfigError, match="compared by metric=return mode=max; choose another folder="):
    other.begin_parts()


@pytest.mark.parametrize(
  "scores", ["1", '{"x": 1}', '{"1/0": 1}', '{"1/2": "a"}', '{"1/2": NaN}', '{"1/2": [1]}']
)
def test_damaged_scores_of_parts_are_named(tmp_path, scores):
  _, [trial] = sweep.plan([*TOY, "max_iterations=2", f"folder={tmp_path}"])
  trial.begin_parts()
  (trial.folder / "parts.json").write_text(f'{{"metric": "return", "mode": "max", "scores": {scores}}}')
  with pytest.raises(ValueError, match=rf"^'{trial.folder}/parts.json' is damaged, .* no valid scores: move"):
    trial.scores()


@pytest.mark.parametrize(
  "content", [b"\x93\xff\n1\n", b"seconds,return\nx,1\n", b"seconds,return\n1\n", b"return\n1\n"]
)
def test_a_damaged_log_is_named(tmp_path, content):
  _, [trial] = sweep.plan([*TOY, f"folder={tmp_path}"])
  finish(trial, 1.0)
  (trial.folder / "metrics.csv").write_bytes(content)
  with pytest.raises(ValueError, match=rf"{trial.folder}/metrics.csv'"):
    trial.result()
