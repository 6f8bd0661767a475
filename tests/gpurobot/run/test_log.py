import csv
import itertools
import json
import math
from contextlib import suppress
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gpurobot.device import clock
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run import log as log_module
from gpurobot.run import metrics
from gpurobot.run.checkpoint import Saver, read
from gpurobot.run.log import Log
from gpurobot.settings.config import ConfigError, assign, defaults
from tests.gpurobot import toy


def make_log(folder, **values) -> Log:
  config = assign(defaults(toy), values)
  learner = PPO(toy.Task(config.env, 64, random=Random(0, 64)), config, World())
  return Log(config, learner, folder)


def test_progress_follows_the_limit_that_is_nearest(tmp_path, monkeypatch):
  log, shown = make_log(tmp_path, max_iterations=10, max_steps=1e9), []
  monkeypatch.setattr(log.display, "progress", shown.append)
  log.learner.iteration = 5
  log.step()
  (progress,) = shown
  assert (progress.done, progress.iteration) == (0.5, 5)
  assert progress.left == pytest.approx(progress.seconds, rel=1e-3)  # as long again
  assert not log.finished
  log.learner.iteration = 10
  assert log.finished
  log.close()


def test_a_resumed_run_foretells_its_end_from_its_own_speed(tmp_path):
  with make_log(tmp_path / "endless") as endless:  # without a limit there is none to foretell
    assert (endless.progress.done, endless.progress.left) == (None, None)
  config = assign(defaults(toy), {"max_iterations": 100})
  learner = PPO(toy.Task(config.env, 64, random=Random(0, 64)), config, World())
  learner.iteration = 90
  log = Log(config, learner, tmp_path, seconds=1000.0)
  assert log.progress.left is None
  learner.iteration = 95
  spent = log.progress
  assert spent.left == pytest.approx(spent.seconds - 1000.0, rel=1e-3)
  log.close()


def test_the_returns_of_a_resumed_run_are_those_of_its_log(tmp_path):
  log = make_log(tmp_path, log_every=1)
  iterate(log, 4)
  log.close()
  resumed = Log(log.config, log.learner, tmp_path)
  found, expected = (vars(one.returns) | {"score": vars(one.returns.score)} for one in (resumed, log))
  assert found == expected
  resumed.close()


def test_a_rank_that_is_not_the_main_one_writes_nothing(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(World, "main", False)
  log = make_log(tmp_path / "run", log_every=1)
  log.learner.collect()
  log.learner.update()
  log.step()
  log.close()
  assert not (tmp_path / "run").exists()
  assert capsys.readouterr().out == ""


def test_a_mistake_of_the_main_rank_ends_all_ranks(tmp_path, monkeypatch):
  """The other ranks hear of it from the main one."""
  monkeypatch.setattr(World, "main", False)
  monkeypatch.setattr(World, "broadcast_object", lambda *_: "log.wandb=x starts no run")
  with pytest.raises(ConfigError, match=r"log\.wandb=x starts no run"):
    make_log(tmp_path / "run")


def iterate(log: Log, times: int) -> None:
  for _ in range(times):
    log.learner.collect()
    log.learner.update()
    log.step()


def rows(folder) -> list[dict[str, str]]:
  with (folder / "metrics.csv").open() as file:
    return list(csv.DictReader(file))


def test_every_column_is_described(tmp_path):
  log = make_log(tmp_path, log_every=1)
  iterate(log, 1)
  log.close()
  unknown = [column for column in log.last_row if metrics.find(column).tag.startswith("task/")]
  assert unknown == ["speed"]  # the toy's own
  board = EventAccumulator(str(tmp_path)).Reload()
  finite = [column for column, value in log.last_row.items() if math.isfinite(value)]
  assert set(board.Tags()["scalars"]) == {metrics.find(column).tag for column in finite}


def test_the_parts_of_the_time_add_up(tmp_path, monkeypatch):
  readings = itertools.count()  # every reading of a clock is a second after the last one
  for module, name in ((log_module, "monotonic"), (clock, "perf_counter")):
    monkeypatch.setattr(module, "time", SimpleNamespace(**{name: lambda: float(next(readings))}))
  log = make_log(tmp_path, log_every=2)
  iterate(log, 4)
  row = log.last_row
  parts = [column for column in row if column.startswith("time/")]
  assert {"time/task", "time/policy", "time/storage", "time/update"} <= set(parts)
  assert sum(row[part] for part in parts) == pytest.approx(1, abs=0.05)
  for part in parts:
    speed = row[part.replace("time", "steps_per_second")]
    assert speed * row[part] == pytest.approx(row["steps_per_second"])
  log.close()


def test_a_warning_is_printed_and_kept(tmp_path, capsys):
  log = make_log(tmp_path, log_every=5, **{"ppo.kl_target": 1e-9, "ppo.schedule": "constant"})
  iterate(log, 10)
  log.close()
  found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
  assert ["the policy changes too fast" in line for line in found] == [True]
  kept = json.loads((tmp_path / "summary.json").read_text())["warnings"]
  assert [f"warning: {warning}" for warning in kept] == found


def test_what_is_not_simulated_is_told_and_kept(tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(toy.Task, "left_out", ("tendon 'rope': a spatial tendon",), raising=False)
  log = make_log(tmp_path)
  log.close()
  told = "not simulated: tendon 'rope': a spatial tendon"
  assert f"warning: {told}" in capsys.readouterr().out
  assert told in json.loads((tmp_path / "summary.json").read_text())["warnings"]
  save = Saver(log.config, log.learner, tmp_path)
  assert save.save(log.state) == []
  assert read(tmp_path, log.learner.env.device)["left_out"] == ["tendon 'rope': a spatial tendon"]


def test_no_console_shows_warnings_alone(tmp_path, capsys):
  log = make_log(tmp_path, log_every=1, **{"log.console": "none"})
  iterate(log, 1)
  log.warn(["look here"])
  log.close()
  assert capsys.readouterr().out == "warning: look here\n"


def test_a_profile_that_the_run_was_too_short_for_is_told(tmp_path, capsys):
  log = make_log(tmp_path, profile=True)
  iterate(log, 2)
  log.close()
  assert "warning: no profile was written: profile=true needs 10 iterations" in capsys.readouterr().out


def test_the_terminal_is_given_back_whatever_ends_the_training(tmp_path, monkeypatch):
  log, stopped = make_log(tmp_path), []
  monkeypatch.setattr(log.display, "close", lambda: stopped.append(True))
  with suppress(ZeroDivisionError), log:
    raise ZeroDivisionError
  assert stopped


def test_waiting_for_the_last_video_is_no_training(tmp_path, monkeypatch):
  log, waits = make_log(tmp_path), []
  iterate(log, 1)
  monkeypatch.setattr(log._recorder, "close", lambda: waits.append(log.seconds) or [])
  log.close()
  assert json.loads((tmp_path / "summary.json").read_text())["seconds"] <= waits[0]
