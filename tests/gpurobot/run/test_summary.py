import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpurobot.run import checkpoint, summary
from gpurobot.run.returns import Returns
from gpurobot.settings.config import TrainConfig, assign
from tasks import ant

SUMMARY = {"steps": 12345678, "seconds": 754.2, "steps_per_second": 16369.0, "success": None, "warnings": []}


def test_a_run_says_how_it_went_and_what_to_do_next(tmp_path):
  returns = Returns()
  for index in range(30):
    returns.add(100.0 * index, 640, 1000 * index, index)
  checkpoint.write(tmp_path, {"config": {"task": "ant"}})
  checkpoint.save(tmp_path / checkpoint.BEST, {"config": {"task": "ant"}})
  found = {**SUMMARY, "success": 0.934, "warnings": ["a", "b"]}
  assert summary.lines(TrainConfig(), found, {}, returns, tmp_path) == [
    f"{tmp_path}: 12,345,678 steps in 12:34 min, 16,369 steps/s",
    "  return       2,900.00, the mean of the last 640 episodes, still rising",
    "  success      93.4% of these episodes",
    "  best return  2,900.00, the mean of 640 episodes, after 29,000 steps",
    f"  warnings     2, listed in {tmp_path}/summary.json",
    f"  saved        {tmp_path}/checkpoint.pt",
    f"  best policy  {tmp_path}/checkpoint.best.pt",
    f"  watch        gpurobot play {tmp_path}",
    f"  plot         gpurobot plot {tmp_path}",
    f"  continue     gpurobot train resume={tmp_path}",
  ]


def test_too_few_episodes_have_no_best(tmp_path):
  returns = Returns()
  returns.add(7.5, 3, 1000, 1.0)
  told = summary.lines(TrainConfig(), SUMMARY, {}, returns, tmp_path)[1:]
  assert told == ["  return  7.50, the mean of the last 3 episodes"]


def test_figures_of_episodes_are_of_the_last_hundred_or_more(tmp_path):
  """A lucky episode in the last row is one of them."""
  rows = "seconds,return,length,success,episodes\n1,7,1,0,5\n2,100,10,0.5,99\n3,nan,nan,nan,0\n4,900,90,1,1\n"
  (tmp_path / "metrics.csv").write_text(rows)
  returns = Returns()
  for value, episodes in ((7.0, 5), (100.0, 99), (900.0, 1)):
    returns.add(value, episodes, 10, 1.0)
  learner = SimpleNamespace(iteration=3, steps=30, describe=lambda: "")
  found = summary.content(TrainConfig(), learner, 1.0, tmp_path, returns)
  assert [found[name] for name in ("return", "length", "success")] == pytest.approx([108, 10.8, 0.505])
  assert found["best_return"] == pytest.approx(108)


def test_before_an_episode_ends_the_reward_is_told():
  assert summary.lines(TrainConfig(), SUMMARY, {}, Returns(), Path("none")) == [
    "none: 12,345,678 steps in 12:34 min, 16,369 steps/s",
    "  return  none yet, as the first episode of each environment does not count",
  ]
  row = {"reward/min": -9.0, "reward/max": 9.0, "reward/upright": 1.5, "reward/effort": -0.25, "length": 0.0}
  _, told = summary.lines(TrainConfig(), SUMMARY, row, Returns(), Path("none"))
  expected = "none yet, as the first episode of each environment does not count; mean reward 1.25 per step"
  assert told.split(maxsplit=1) == ["return", expected]
  taught = summary.lines(
    TrainConfig(), SUMMARY, {"teacher_share": 1.0, "reward/upright": math.nan}, Returns(), Path("none")
  )
  assert taught[1].endswith("each environment does not count, nor one that a teacher drives")


def commands(**values) -> dict[str, str]:
  return dict(summary.commands(assign(TrainConfig(env=ant.Config()), values), Path("a b")))


@pytest.mark.parametrize(
  ("task", "named"),
  [("gym/Ant-v5", ""), ("my tasks/dog.py", " 'task=my tasks/dog.py'"), ("mine.dog", " task=mine.dog")],
)
def test_a_task_of_the_users_own_is_named(task, named):
  assert commands(task=task) == {
    "watch": f"gpurobot play 'a b'{named}",
    "plot": "gpurobot plot 'a b'",
    "continue": f"gpurobot train 'resume=a b'{named}",
  }


def test_so_is_a_network_and_a_loss():
  found = commands(**{"ppo.network": "my.py:Net", "ppo.loss": "my.py:loss"})
  assert found["watch"] == "gpurobot play 'a b' network=my.py:Net"
  assert found["continue"] == "gpurobot train 'resume=a b' ppo.loss=my.py:loss ppo.network=my.py:Net"


def test_times_read_as_people_write_them():
  found = [summary.duration(seconds) for seconds in (12.34, 59.6, 754.2, 11045)]
  assert found == ["12.3 s", "1:00 min", "12:34 min", "3:04:05 h"]
