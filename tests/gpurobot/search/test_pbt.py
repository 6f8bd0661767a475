import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from gpurobot import sweep
from gpurobot.device.transfer import to_cpu
from gpurobot.run import checkpoint
from gpurobot.search import pbt
from gpurobot.search.space import Choices, Range
from gpurobot.search.trial import Measure, Mode, Trial
from tests.gpurobot import toy
from tests.gpurobot.learn.test_ppo import learner
from tests.gpurobot.search.trials import finish, train_here

SPACE = {"ppo.lr": Range(1e-4, 1e-2, log=True, whole=False), "seed": Choices(("0",))}
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def make_plan(folder: Path, generations: int = 3) -> pbt.Plan:
  return pbt.Plan(SPACE, folder, generations, exploit=0.25, seed=0, jobs=1, measure=Measure())


def make_members(*rates: float) -> list[pbt.Member]:
  base = {"task": toy.__file__, "seed": "0", "max_iterations": "6"}
  return [pbt.Member(base | {"ppo.lr": f"{rate:g}"}, index) for index, rate in enumerate(rates)]


def runner(folder: Path, started: list[str], failing: int = -1) -> Callable[[Sequence[Trial]], bool]:
  """Return a stand-in for the trainings of a generation, whose return is the index of the member."""

  def run(trials: Sequence[Trial]) -> bool:
    for index, trial in enumerate(trials):
      if not trial.is_finished():
        started.append(str(trial.folder.relative_to(folder)))
        trial.folder.mkdir(parents=True, exist_ok=True)
        if index != failing:
          finish(trial, float(index), iterations=int(trial.limits["max_iterations"]))
          (trial.folder / "checkpoint.pt").touch()
    return True

  return run


def test_the_worst_continue_the_best_with_perturbed_settings():
  members = make_members(1e-3, 2e-3, 3e-3, 4e-3)
  plan, rng = make_plan(Path()), np.random.default_rng(0)
  found = [pbt.next_generation(members, [3.0, 1.0, -math.inf, 2.0], plan, rng) for _ in range(200)]
  for generation in found:
    assert [generation[index] for index in (0, 1, 3)] == [members[index] for index in (0, 1, 3)]
    assert generation[2].parent == 0
    own = {"ppo.lr": "", "seed": ""}
    assert generation[2].values | own == members[0].values | own
  assert len({generation[2].values["seed"] for generation in found} - {"0"}) == 200
  rates = [float(generation[2].values["ppo.lr"]) for generation in found]
  perturbed = [rate for rate in rates if rate in (8e-4, 1.2e-3)]
  assert 0.65 < len(perturbed) / len(rates) < 0.85  # the others are drawn anew
  assert 0.4 < perturbed.count(8e-4) / len(perturbed) < 0.6
  assert 1e-4 <= min(rates) < 5e-4
  assert 2e-3 < max(rates) <= 1e-2
  pair = pbt.next_generation(members[:2], [1.0, 2.0], plan, rng)
  assert [member.parent for member in pair] == [1, 1]


def test_a_member_that_failed_is_replaced_and_continued_by_none():
  members, rng = make_members(1e-3, 2e-3, 3e-3, 4e-3, 5e-3), np.random.default_rng(0)
  scores = [None, -math.inf, None, None, 1.0]  # no episode ended in the second
  found = pbt.next_generation(members, scores, make_plan(Path()), rng)
  assert [member.parent for member in found] == [4, 1, 4, 4, 4]
  assert [found[index] for index in (1, 4)] == [members[index] for index in (1, 4)]
  half = make_plan(Path())._replace(exploit=0.5)
  parents = {member.parent for member in pbt.next_generation(members, scores[:3] + scores[-2:], half, rng)}
  assert parents <= {1, 4}


def test_a_member_that_failed_in_a_generation_that_is_over_is_not_tried_again(tmp_path):
  """Its score would change what followed, and its parent's checkpoint is gone."""
  started: list[str] = []

  def evolve(failing: int) -> list[Trial]:
    members = make_members(1e-3, 2e-3, 3e-3, 4e-3)
    return pbt.evolve(members, make_plan(tmp_path), runner(tmp_path, started, failing))

  before = evolve(failing=3)
  assert len(started) == 12
  lineage = (tmp_path / pbt.LINEAGE).read_text()
  after = evolve(failing=-1)
  assert started[12:] == ["member=3/generation=2"]  # nothing has followed it
  assert [trial.values for trial in after] == [trial.values for trial in before]
  assert (tmp_path / pbt.LINEAGE).read_text().splitlines()[:-1] == lineage.splitlines()[:-1]


def test_a_generation_continues_the_checkpoints_of_the_one_before(tmp_path):
  started: list[str] = []
  commands: list[list[str]] = []

  def run(trials: Sequence[Trial]) -> bool:
    for trial in trials:
      if not trial.is_finished():
        commands.append(trial.command())
        (trial.folder / "replay").mkdir(parents=True)
    return runner(tmp_path, started)(trials)

  trials = pbt.evolve(make_members(1e-3, 2e-3, 3e-3, 4e-3), make_plan(tmp_path), run)
  assert started == [f"member={m}/generation={g}" for g in range(3) for m in range(4)]
  assert not any(word.startswith("resume=") for command in commands[:4] for word in command)
  for command, parent in zip(commands[4:8], (3, 1, 2, 3), strict=True):
    assert f"resume={tmp_path}/member={parent}/generation=0" in command
    assert "max_iterations=4" in command
  kept = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("checkpoint.pt"))
  assert kept == [f"member={index}/generation=2/checkpoint.pt" for index in range(4)]
  assert len([*tmp_path.rglob("replay")]) == 4
  with (tmp_path / pbt.LINEAGE).open() as file:
    rows = list(csv.DictReader(file))
  assert [(int(row["generation"]), int(row["parent"])) for row in rows[3:8]] == [
    (0, 3), (1, 3), (1, 1), (1, 2), (1, 3),
  ]  # fmt: skip
  assert (tmp_path / pbt.DRAWING).stat().st_size > 1000

  before = started.copy()
  again = pbt.evolve(make_members(1e-3, 2e-3, 3e-3, 4e-3), make_plan(tmp_path), run)
  assert started == before  # all are finished
  assert [trial.values for trial in again] == [trial.values for trial in trials]


def test_the_best_policy_of_any_generation_is_kept(tmp_path):
  """It is the third member's of the second generation: 5; the sweep may be started again at its end."""
  means = {(0, 0): 2.0, (2, 1): 5.0, (0, 1): 4.0, (1, 2): 3.0}

  def run(trials: Sequence[Trial]) -> bool:
    new = [(index, trial) for index, trial in enumerate(trials) if not trial.is_finished()]
    done = runner(tmp_path, [])(trials)
    for index, trial in new:
      generation = int(trial.folder.name.partition("=")[2])
      if (index, generation) in means:
        content = {"config": {"task": "toy"}, "return": means[index, generation], "steps": index}
        checkpoint.save(trial.folder / checkpoint.BEST, content)
    return done

  for _ in range(2):
    pbt.evolve(make_members(1e-3, 2e-3, 3e-3), make_plan(tmp_path), run)
    kept = checkpoint.load(tmp_path / checkpoint.BEST)
    assert (kept["return"], kept["steps"]) == (5.0, 2)


def test_a_copy_explores_otherwise_than_the_member_that_it_continues():
  """With its seed it repeats the member's noise; with one of its own it has other noise, always the same."""

  def actions(seed: int) -> torch.Tensor:
    other = learner(seed=seed)
    other.load_state_dict(state)
    other.collect()
    return other.rollout.samples["action"].clone()

  one = learner(seed=0)
  state = to_cpu(one.state_dict())
  one.collect()
  assert torch.equal(actions(0), one.rollout.samples["action"])
  assert not torch.equal(actions(1), actions(0))
  assert torch.equal(actions(1), actions(1))


def test_the_smallest_metric_is_best_if_it_is_an_error(tmp_path):
  plan = make_plan(tmp_path, generations=2)._replace(measure=Measure(mode=Mode.min))
  pbt.evolve(make_members(1e-3, 2e-3, 3e-3, 4e-3), plan, runner(tmp_path, []))
  with (tmp_path / pbt.LINEAGE).open() as file:
    rows = list(csv.DictReader(file))
  assert [float(row["score"]) for row in rows] == [0, 1, 2, 3] * 2
  assert [int(row["parent"]) for row in rows[4:]] == [0, 1, 2, 0]


def test_an_interrupted_generation_decides_nothing(tmp_path):
  trials = pbt.evolve(make_members(1e-3, 2e-3), make_plan(tmp_path), lambda _: False)
  assert [trial.folder.name for trial in trials] == ["generation=0"] * 2
  assert not (tmp_path / pbt.LINEAGE).exists()


def test_a_population_that_has_failed_as_a_whole_ends(tmp_path):
  calls = []
  trials = pbt.evolve(make_members(1e-3, 2e-3), make_plan(tmp_path), lambda all_: calls.append(all_) or True)
  assert [trial.folder.name for trial in trials] == ["generation=0"] * 2
  assert len(calls) == 1
  assert (tmp_path / pbt.LINEAGE).exists()


def test_a_population_trains_on_with_perturbed_settings(tmp_path, monkeypatch):
  monkeypatch.setattr(sweep, "start", train_here)
  words = ["max_iterations=2", "search=pbt", "samples=2", "generations=2", "exploit=0.5", "jobs=2"]
  sweep.main([f"task={toy.__file__}", *words, "ppo.lr=log:1e-4..1e-2", f"folder={tmp_path}"])
  with (tmp_path / pbt.LINEAGE).open() as file:
    rows = list(csv.DictReader(file))
  parents = {row["parent"] for row in rows if row["generation"] == "1"}
  assert len(parents) == 1
  assert len({row["setting"] for row in rows}) == 3
