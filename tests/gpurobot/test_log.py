from gpurobot.config import assign, defaults
from gpurobot.distributed import World
from gpurobot.log import Log
from gpurobot.ppo import Learner
from gpurobot.random import Random
from tests.gpurobot import toy


def make_log(folder, **values) -> Log:
  config = assign(defaults(toy), values)
  learner = Learner(toy.Task(config.env, 64, random=Random(0, 64)), config, World())
  return Log(config, learner, folder)


def test_levels_are_noted_when_they_are_first_reached(tmp_path):
  log = make_log(tmp_path)
  for seconds, value in enumerate((-5.0, 35.0, 20.0, float("nan"), 110.0)):
    log._note_return(value, float(seconds))
  assert {level: log.reached[level] for level in ("9", "30", "40", "100")} == {
    "9": 1,
    "30": 1,
    "40": 4,
    "100": 4,
  }
  assert "200" not in log.reached
  assert log.last_return == 110
  log.close()


def test_progress_follows_the_limit_that_is_nearest(tmp_path):
  log = make_log(tmp_path, max_iterations=10, max_steps=1e9)
  log.learner.iteration = 5
  log.step()
  assert log.progress.tasks[0].percentage == 50
  assert not log.finished
  log.learner.iteration = 10
  assert log.finished
  log.close()


def test_a_rank_that_is_not_the_main_one_writes_nothing(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(World, "main", False)
  log = make_log(tmp_path / "run", log_every=1)
  log.learner.collect()
  log.learner.update()
  log.step()
  log.close()
  assert not (tmp_path / "run").exists()
  assert capsys.readouterr().out == ""
