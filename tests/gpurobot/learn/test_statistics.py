import math

import pytest
import torch
from tensordict import TensorDict

from gpurobot.device.distributed import World
from gpurobot.learn.statistics import Episodes, Extremes, LossMeans, Means, Statistics

CPU = torch.device("cpu")
NO, YES = torch.tensor([False] * 3), torch.tensor([True] * 3)


def test_episodes_sum_raw_returns():
  episodes = Episodes(3, CPU)
  episodes.whole.fill_(True)
  episodes.add(torch.tensor([1.0, 2.0, torch.nan]), NO, torch.tensor([True, True, False]), NO)
  episodes.add(torch.tensor([10.0, 20.0, 30.0]), torch.tensor([True, False, True]), YES, YES)
  assert episodes.sums.tolist() == [2, 11 + 30, 2 + 1, 2]
  episodes.restart()
  episodes.add(torch.tensor([0.0, 5.0, 0.0]), torch.tensor([False, True, False]), YES, NO)
  assert episodes.sums.tolist() == [1, 27, 3, 0]


def test_the_first_episode_of_each_environment_is_left_out():
  """It starts at a random age; the next counts, after a failure too."""
  episodes = Episodes(3, CPU)
  first = torch.tensor([True, False, False]), torch.tensor([True, True, False])  # an end, nothing, a failure
  episodes.add(torch.ones(3), *first, NO)
  assert episodes.sums.tolist() == [0, 0, 0, 0]
  episodes.add(torch.tensor([5.0, 7.0, 9.0]), YES, YES, NO)
  assert episodes.sums.tolist() == [2, 5 + 9, 2, 0]


def test_greedy_environments_are_summed_apart_too():
  statistics = Statistics(3, CPU)
  assert "greedy_return" not in statistics.report(World(), {})
  statistics.episodes.whole.fill_(True)
  statistics.episodes.marked["greedy"] = torch.tensor([False, True, True])
  add(statistics, step([1.0, 2.0, 4.0], terminated=[True] * 3))
  found = statistics.report(World(), {})
  assert (float(found["return"]), float(found["greedy_return"])) == (pytest.approx(7 / 3), 3.0)
  assert math.isnan(statistics.report(World(), {})["greedy_return"])


def test_what_a_teacher_drives_is_counted_apart_alone():
  """Environment 0 is the student's, 1 the teacher's, and 2 changes hands in an episode."""
  statistics = Statistics(3, CPU)
  statistics.episodes.whole.fill_(True)
  statistics.episodes.marked["teacher"] = torch.tensor([False, True, True])
  add(statistics, step([1.0, 2.0, 4.0]))
  statistics.episodes.hand_over(torch.tensor([False, True, False]))
  add(statistics, step([1.0, 2.0, 6.0], terminated=[True] * 3))
  found = statistics.report(World(), {})
  assert [float(found[name]) for name in ("return", "teacher_return", "episodes")] == [2.0, 4.0, 1.0]
  assert float(found["reward/run"]) == pytest.approx((1 + 1 + 6) / 3)
  add(statistics, step([1.0, 2.0, 6.0], terminated=[True] * 3))
  assert float(statistics.report(World(), {})["return"]) == (1 + 6) / 2  # the next episode counts


def test_means_weigh_only_what_is_valid():
  means = Means("numbers", CPU)
  means.add({"a": torch.tensor([1.0, torch.nan]), "b": torch.ones(2)}, torch.tensor([True, False]))
  means.add({"a": torch.tensor([3.0, 5.0]), "b": torch.ones(2)}, torch.tensor([True, True]))
  assert {name: float(mean) for name, mean in means.means().items()} == {"a": 3.0, "b": 1.0}
  means.restart()
  assert all(math.isnan(mean) for mean in means.means().values())


@pytest.mark.parametrize(("names", "mean"), [("ab", 2.0), ("ac", 3.0)])
def test_means_of_a_checkpoint_go_on_if_their_names_stay(names, mean):
  before, after = Means("numbers", CPU), Means("numbers", CPU)
  before.add_scalars({"a": torch.ones(()), "b": torch.ones(())})
  after.load_state_dict(before.state_dict())
  assert after.state_dict() == before.state_dict()  # also before the names are known: a warm-up asks
  after.add_scalars(dict.fromkeys(names, torch.tensor(3.0)))
  assert after.means()["a"] == mean
  after.load_state_dict({})  # of an older checkpoint
  assert after.means()["a"].isnan()


def test_extremes_pass_over_what_is_no_number():
  extremes = Extremes(2, CPU)
  assert all(extreme.isnan().all() for extreme in extremes.ends())  # nothing was added, as of images alone
  for row, *numbers in ((0, 1.0, -2.0), (1, 7.0), (0, 3.0, 0.0), (1, torch.nan)):
    extremes.add(row, torch.tensor(numbers))
  assert extremes.values.tolist() == [[2.0, 3.0], [-7.0, 7.0]]
  assert [extreme.tolist() for extreme in extremes.ends()] == [[-2.0, 7.0], [3.0, 7.0]]


def step(reward: list[float], **flags: list[bool]) -> TensorDict:
  entries = {name: torch.tensor(flags.get(name, [False] * 3)) for name in ("terminated", "truncated")}
  entries |= {"valid": torch.tensor(flags.get("valid", [True] * 3)), "reward": torch.tensor(reward)}
  if "success" in flags:
    entries["success"] = torch.tensor(flags["success"])
  entries |= {"reward_terms": {"run": torch.tensor(reward)}, "metrics": {"speed": torch.ones(3)}}
  return TensorDict(entries, [3])


def add(statistics: Statistics, entries: TensorDict) -> None:
  statistics.add_step(entries, entries["valid"])


def test_a_report_sums_all_up_and_starts_again():
  statistics = Statistics(3, CPU)
  statistics.episodes.whole.fill_(True)
  obs = torch.tensor([[1.0], [-4.0], [2.0]])
  add(statistics, step([1.0, 2.0, 3.0], success=[False] * 3))
  ended = {"terminated": [True, False, False], "truncated": [False, True, False]}
  add(statistics, step([1.0, 2.0, 3.0], success=[True, False, False], **ended))
  statistics.add_obs(obs)
  measures = Means("the measures of an update", CPU)
  measures.add_scalars({"explained_variance": torch.tensor(0.5)})
  found = statistics.report(World(), {"overflow": torch.tensor(7)}, [measures])
  report = {name: float(v) for name, v in found.items()}
  expected = {"return": 3.0, "length": 2.0, "episodes": 2.0, "success": 0.5}
  expected |= {"obs/min": -4.0, "obs/max": 2.0}
  expected |= {"reward/min": 1.0, "reward/max": 3.0, "reward/run": 2.0, "speed": 1.0, "overflow": 7.0}
  assert report.items() >= (expected | {"explained_variance": 0.5}).items()
  again = {name: float(v) for name, v in statistics.report(World(), {}).items()}
  assert again["episodes"] == 0
  assert math.isnan(float(measures.means()["explained_variance"]))
  assert math.isnan(again["return"])


def test_means_of_a_loss_leave_skipped_steps_out_and_start_again():
  losses = LossMeans(("weight", "kl", "entropy"), CPU)
  for norm in (1.0, 3.0):
    losses.add(torch.tensor([4.0, 2.0, 8.0]), torch.tensor(norm))
  losses.add(torch.zeros(3), torch.tensor(0.0))  # skipped
  report = {name: float(value) for name, value in losses.report().items()}
  assert report == {"kl": 0.5, "entropy": 2.0, "gradient_norm": 2.0, "gradient_norm_max": 3.0}
  assert math.isnan(losses.report()["kl"])


def test_success_is_unknown_where_a_task_has_none():
  statistics = Statistics(3, CPU)
  statistics.episodes.whole.fill_(True)
  add(statistics, step([1.0, 2.0, 3.0], terminated=[True] * 3))
  report = statistics.report(World(), {})
  assert math.isnan(float(report["success"]))
  assert float(report["episodes"]) == 3
