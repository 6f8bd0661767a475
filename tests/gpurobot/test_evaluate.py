import json
import math
import shutil

import pytest
import torch
from tensordict import TensorDict

import tasks
import train
from gpurobot import evaluate
from gpurobot.deploy import figures as figures_of
from gpurobot.run.csv_log import numbers
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy
from tests.tasks import shaken_cartpole

TOY = f"task={toy.__file__}"


class Counting:
  """Episodes of environment i last i + 1 steps and end; the reward is 1, the metric is i."""

  num_envs = 3
  device = torch.device("cpu")
  last = torch.arange(3)
  seen = torch.zeros(3, 1)

  def reset(self):
    self.age = torch.zeros(3, dtype=torch.int64)
    return TensorDict({"policy": self.seen}, [3])

  def step(self, _action):
    self.age += 1
    ended = self.age > self.last
    self.age.masked_fill_(ended, 0)
    flags = {"terminated": ended, "truncated": torch.zeros_like(ended), "valid": torch.ones_like(ended)}
    metrics, success = {"index": torch.arange(3.0)}, ended & (torch.arange(3) == 2)
    terms = {"half": torch.full([3], 0.5), "index": torch.arange(3.0)}
    step = {"obs": {"policy": self.seen}, "reward": torch.ones(3), "reward_terms": terms}
    return TensorDict(step | {"metrics": metrics, "success": success, **flags}, [3])


def act(*_):
  return torch.zeros(3, 1)


@pytest.mark.parametrize("rounds", [1, 4])
def test_short_episodes_count_no_more_than_long_ones(rounds):
  found = figures_of.run(Counting(), act, rounds)
  returns = found["return"].value + found["return"].deviations
  assert sorted(returns.tolist()) == sorted([1.0, 2.0, 3.0] * rounds)
  assert found["length"].value == found["return"].value == 2
  assert found["return/half"].value == pytest.approx(1)
  assert found["return/index"].value == pytest.approx((0 * 1 + 1 * 2 + 2 * 3) / 3)
  assert found["success"].value == pytest.approx(1 / 3)
  assert found["index"].value == pytest.approx((0 * 1 + 1 * 2 + 2 * 3) / 6)


def test_what_diverged_counts_up_to_there():
  class Diverging(Counting):
    def step(self, action):
      step = super().step(action)
      step["valid"] = ~step["terminated"]
      step["terminated"] &= False
      step["reward"][~step["valid"]] = torch.nan
      return step

  found = figures_of.run(Diverging(), act, 1)
  assert found["diverged"].value == 1
  assert found["return"].value == pytest.approx((0 + 1 + 2) / 3)


def test_an_interval_holds_the_truth_19_times_in_20():
  generator = torch.Generator().manual_seed(0)
  hits = 0
  for _ in range(1000):
    counts = torch.randint(1, 9, (60,), generator=generator).double()
    sums = counts * 3 + counts.sqrt() * torch.randn(60, generator=generator)
    figure = figures_of.Figure.mean(sums, counts)
    hits += abs(figure.value - 3) < figure.interval
  assert 930 <= hits <= 965


def test_a_share_of_all_or_nothing_is_not_certain():
  assert figures_of.Figure.share(torch.ones(100)).interval == pytest.approx(0.037, abs=5e-4)  # Wilson: 0.963
  half = torch.arange(100) % 2.0
  assert figures_of.Figure.share(half).interval == pytest.approx(0.098, abs=1e-3)  # 1.96 sqrt(p (1 - p) / n)
  both = figures_of.Figure.share(half) - figures_of.Figure.share(half)
  assert (both.value, both.interval) == (0, pytest.approx(0.037, abs=5e-4))


def test_a_difference_is_taken_pair_by_pair():
  start = torch.randn(50, dtype=torch.float64)
  one = torch.ones_like(start)
  gap = figures_of.Figure.mean(start + 0.5, one) - figures_of.Figure.mean(start, one)
  assert gap.value == pytest.approx(0.5)
  assert gap.interval < 1e-12


def repeating(seen: torch.Tensor) -> Counting:
  """Return environments with episodes of 2 steps and a return of 2, by their observations [3]."""
  env = Counting()
  env.last, env.seen = torch.ones(3), seen[:, None]
  return env


def test_episodes_that_are_all_the_same_are_said():
  with pytest.warns(UserWarning, match="^all 6 episodes are the same, so .*; sampled=true "):
    found = figures_of.run(repeating(torch.ones(3)), act, 2)
  assert (found["return"].value, found["return"].interval) == (2, 0)
  assert "seen" not in found


def test_equal_returns_of_different_episodes_are_no_repetition(recwarn):
  found = figures_of.run(repeating(torch.tensor([1.0, 1.0, 1.001])), act, 1)
  assert found["return"].interval == 0
  figures_of.run(Counting(), act, 1)
  assert not recwarn.list


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  train.main([TOY, f"run_dir={folder}", "max_iterations=60", "seed=1"])
  return folder


def figures(place, *words: str) -> dict:
  """Return what an evaluation writes as JSON."""
  evaluate.main([*words, f"json={place / 'figures.json'}"])
  return json.loads((place / "figures.json").read_text())


def test_a_run_folder_is_evaluated(trained, tmp_path, capsys):
  words = [f"checkpoint={trained}", TOY, "episodes=40", "num_envs=16"]
  content = figures(tmp_path, *words)
  found = content["own"]
  assert content["episodes"] == 48
  assert found["length"] == {"value": 20, "interval_95": 0}
  assert -8 < found["return"]["value"] < 0
  assert 0 < found["return"]["interval_95"] < 1
  assert found["return/distance"] == found["return"]
  assert found["speed"]["value"] > 0
  assert "success" not in found
  first, *rows = capsys.readouterr().out.splitlines()
  assert first.split() == ["48", "episodes", "own"]
  shown = {name: (float(value), float(interval)) for name, value, _, interval in map(str.split, rows)}
  assert {*shown} == {*found}
  assert shown["return"] == pytest.approx([*found["return"].values()], abs=5e-4)  # three decimals
  assert figures(tmp_path, *words) == content


def test_a_table_has_the_decimals_of_its_intervals_and_names_what_is_0():
  sums = torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]])
  figure, zero = (figures_of.Figure.mean(x, torch.ones(3)) for x in sums)
  expected = "3 episodes  own         mujoco\nreturn      2.3 +- 1.7  0 +- 0\n0 in all episodes: flight"
  found = {"own": {"return": figure, "flight": zero}, "mujoco": {"return": zero}}
  assert figures_of.table(3, found) == expected


def test_one_episode_has_no_interval(trained, tmp_path):
  assert math.isnan(figures_of.Figure.mean(torch.ones(1), torch.ones(1)).interval)
  found = figures(tmp_path, f"checkpoint={trained}", TOY, "episodes=1")
  assert found["own"]["return"]["interval_95"] is None


def test_the_policy_is_better_without_noise(trained, tmp_path):
  means, sampled = (
    figures(tmp_path, f"checkpoint={trained}", TOY, f"sampled={word}")["own"]["return"]
    for word in ("false", "true")
  )
  assert means["value"] - means["interval_95"] > sampled["value"] + sampled["interval_95"]


def test_a_policy_is_perturbed_as_in_training_through_whole_episodes(tmp_path):
  task = f"task={shaken_cartpole.__file__}"
  train.main([task, "num_envs=64", "max_iterations=1", "env.noise_position=0.5", f"run_dir={tmp_path}"])
  words = [f"checkpoint={tmp_path}", task, "episodes=16", "env.episode_steps=10"]
  calm, noisy = (figures(tmp_path, *words, f"perturbed={word}")["own"] for word in ("false", "true"))
  assert calm["length"] == noisy["length"] == {"value": 10, "interval_95": 0}
  assert calm["return"] != noisy["return"]


def test_a_report_shows_the_whole_way(tmp_path):
  train.main(["task=cartpole", "num_envs=64", "max_iterations=12", "log_every=1", f"run_dir={tmp_path}"])
  found = figures(tmp_path, f"checkpoint={tmp_path}", "episodes=8", "env.episode_steps=100", "report=true")
  exported = [f"{name} in MuJoCo C" for name in ("ONNX", *["C++"] * bool(shutil.which("g++")))]
  assert [*found] == ["episodes", "training", "here", "perturbed", "MuJoCo C", *exported]
  for name in ("here", *exported):
    assert found[name]["return"]["value"] == pytest.approx(found["MuJoCo C"]["return"]["value"], rel=0.02)
  rows = numbers(tmp_path / "metrics.csv")[-2:]
  assert found["training"]["length"]["value"] == pytest.approx(sum(row["length"] for row in rows) / 2)


def test_a_report_has_no_settings_of_its_parts():
  with pytest.raises(ConfigError, match="report=true shows other engines and perturbations too; leave"):
    evaluate.show(evaluate.EvaluationSettings(demo="cartpole", report=True, perturbed=True))


def test_other_engines_perturb_nothing():
  with pytest.raises(ConfigError, match="perturbed=true acts in engine=own; leave it out with engine=mujoco"):
    evaluate.show(evaluate.EvaluationSettings(demo="cartpole", perturbed=True, engine=evaluate.Engine.mujoco))


def test_a_robot_s_own_file_needs_one_that_was_given(capsys):
  with pytest.raises(SystemExit):
    evaluate.main(["demo=cartpole", "engine=file"])
  said = "error: engine=file needs a robot's file: train with task=walk env.robot=<file>\n"
  assert capsys.readouterr().err == said


def test_a_report_says_why_it_has_no_column_of_the_robot_s_own_file(capsys, monkeypatch):
  def refuse(*_):
    raise ConfigError("engine=file: robot.xml: this is no MJCF or URDF file")

  monkeypatch.setattr(evaluate, "evaluate", refuse)
  assert evaluate._on_own_file(evaluate.EvaluationSettings(), refuse) == {}
  said = "no column of the robot's own file: engine=file: robot.xml: this is no MJCF or URDF file\n"
  assert capsys.readouterr().err == said


def test_a_policy_of_gymnasium_s_task_does_as_well_in_gymnasium_itself(tmp_path, capsys):
  words = ["task=gym/InvertedPendulum-v5", "num_envs=64", "threads=1", "max_iterations=3"]
  train.main([*words, f"run_dir={tmp_path}"])
  capsys.readouterr()
  found = figures(tmp_path, f"checkpoint={tmp_path}", "episodes=50", "engine=gymnasium", "gap=true")
  other, own, gap = (found[name]["return"] for name in ("gymnasium", "own", "gap"))
  assert 15 < own["value"] < 1000
  assert own["value"] + gap["value"] == pytest.approx(other["value"], rel=1e-5)
  assert abs(gap["value"]) < 2 * gap["interval_95"]
  assert gap["interval_95"] < own["interval_95"] + other["interval_95"]
  first, *rows = capsys.readouterr().out.splitlines()
  assert first.split() == ["50", "episodes", "gymnasium", "own", "gap"]
  assert [row.count("+-") for row in rows[:2]] == [3, 3]


def test_dropped_contacts_are_said(trained, capsys, monkeypatch):
  monkeypatch.setattr(tasks.load(toy.__file__).Task, "counters", lambda _self: {"overflow": torch.tensor(7)})
  evaluate.main([f"checkpoint={trained}", TOY, "episodes=1"])
  assert capsys.readouterr().err == "warning: 7 contacts exceeded the capacity and were dropped\n"
