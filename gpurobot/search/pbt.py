"""Population-based training (PBT; Jaderberg et al. 2017, arXiv 1711.09846): settings change while runs go on.

All members train for a generation. Then the worst continue from the checkpoints of the best, with settings
that are perturbed. Each generation of a member has a folder of its own, so nothing is overwritten, and the
decisions follow from the folders alone. The population's folder has the best policy of all generations.
"""

import csv
import math
import shutil
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpurobot import extras
from gpurobot.run import checkpoint, replay_files
from gpurobot.run.best_policy import return_of
from gpurobot.run.files import rewrite
from gpurobot.search.pruning import Run
from gpurobot.search.space import Choices, Range, Space
from gpurobot.search.trial import Measure, Trial, assemble, limits, read_config
from gpurobot.settings.config import ConfigError

RESAMPLE = 0.25  # probability that a setting is drawn anew instead of perturbed
LINEAGE, DRAWING = "lineage.csv", "lineage.png"


class Plan(NamedTuple):
  """Plan of a population's training."""

  space: Space
  folder: Path
  generations: int
  exploit: float  # share of the members that the others replace in a generation
  seed: int  # of the choices
  jobs: int  # trials at a time
  measure: Measure


class Member(NamedTuple):
  """A member in one generation: its values by key, and the member that it continued."""

  values: dict[str, str]
  parent: int


class Ancestry(NamedTuple):
  """A member in one generation, as a row of the lineage's table."""

  generation: int
  member: int
  parent: int
  score: float | None  # the metric; None if it failed
  setting: str


def check_space(space: Space) -> None:
  """Raise ConfigError if a setting cannot be perturbed while a run goes on, or none is a range."""
  for key, values in space.items():
    if isinstance(values, Choices) and len(values.words) > 1:
      raise ConfigError(f"search=pbt perturbs ranges, and {key} has several values; write one, or a range")
    if isinstance(values, Range) and (values.whole or key.partition(".")[0] not in ("ppo", "sac", "td3")):
      raise ConfigError(f"search=pbt perturbs real numbers of the algorithm; {key} is none: write one value")
  if not any(isinstance(values, Range) for values in space.values()):
    raise ConfigError("search=pbt perturbs ranges; write one or more, such as ppo.lr=log:1e-4..1e-2")


def next_generation(
  members: Sequence[Member], scores: Sequence[float | None], plan: Plan, rng: np.random.Generator
) -> list[Member]:
  """Return the members of the next generation: the worst continue one of the best, perturbed.

  These get seeds of their own, to explore differently from the members that they continue.
  scores: see `Trial.score`; None for failed members, which leave nothing to continue. Not all have failed.
  """
  known = {index: score for index, score in enumerate(scores) if score is not None}
  order = sorted(known, key=lambda index: -known[index])
  count = max(1, int(plan.exploit * len(members)))
  best, good = order[:count], order[: len(members) - count]
  worst = set(range(len(members))).difference(good)
  found = []
  for index, member in enumerate(members):
    parent = int(rng.choice(best)) if index in worst else index
    values = member.values
    if index in worst:
      values = explore(members[parent].values, plan.space, rng) | {"seed": str(rng.integers(2**31))}
    found.append(Member(values, parent))
  return found


def explore(values: Mapping[str, str], space: Space, rng: np.random.Generator) -> dict[str, str]:
  """Return the values by key; each range's is perturbed or drawn anew."""
  changed = dict(values)
  for key, own in space.items():
    if isinstance(own, Range):
      fresh, unit, up = rng.random() < RESAMPLE, rng.random(), rng.random() < 1 / 2
      changed[key] = own.at(unit) if fresh else own.perturbed(values[key], up=bool(up))
  return changed


def evolve(members: Sequence[Member], plan: Plan, run: Run) -> list[Trial]:
  """Train a population of at least two; return the trials of its last generation, and write its lineage.

  Stops early if the user interrupts, or if all members of a generation fail. A generation is final
  once another follows: a member that failed in it is not tried again.
  """
  lineage: list[Ancestry] = []
  trials: list[Trial] = []
  for generation in range(plan.generations):
    before, trials = trials, make_generation(plan, generation, members, trials)
    decided = any(plan.folder.glob(f"member=*/generation={generation + 1}"))
    if not decided and not run(trials):
      break
    scores = [trial.score() for trial in trials]
    for index, (member, trial, score) in enumerate(zip(members, trials, scores, strict=True)):
      value = None if score is None else plan.measure.sign * score
      lineage.append(Ancestry(generation, index, member.parent, value, " ".join(trial.setting[1:])))
      keep_best(trial.folder, plan.folder)
    write_lineage(lineage, plan)
    if all(score is None for score in scores):
      break  # there is nothing to continue
    for trial in before:
      forget_checkpoint(trial.folder)
    rng = np.random.default_rng([plan.seed, generation])
    members = next_generation(members, scores, plan, rng)
  return trials


def make_generation(
  plan: Plan, generation: int, members: Sequence[Member], before: Sequence[Trial]
) -> list[Trial]:
  """Return a trial for each member; raise ConfigError if its settings are rejected.

  before: the trials of the generation before, which the members continue; none in the first.
  """
  trials = []
  searched = [key for key, values in plan.space.items() if isinstance(values, Range)]
  for index, member in enumerate(members):
    folder = plan.folder / f"member={index}" / f"generation={generation}"
    ends = limits(read_config(member.values), Fraction(generation + 1, plan.generations))
    values = member.values | {limit: str(end) for limit, end in ends.items()}
    setting = (f"member={index}", *(f"{key}={member.values[key]}" for key in searched))
    parent = before[member.parent].folder if before else None
    trials.append(assemble(setting, values, folder, plan.jobs, plan.measure, parent))
  return trials


def keep_best(folder: Path, population: Path) -> None:
  """Copy the best policy of a run to the population's folder, unless one there has as high a mean return."""
  found, kept = folder / checkpoint.BEST, population / checkpoint.BEST
  mean, before = return_of(found), return_of(kept)
  if mean is not None and (before is None or mean > before):
    with rewrite(kept) as file:
      file.write(found.read_bytes())


def forget_checkpoint(folder: Path) -> None:
  """Remove the checkpoints of a generation that nobody continues any more; its log stays."""
  for name in (checkpoint.NAME, checkpoint.PREVIOUS, checkpoint.BEST):
    (folder / name).unlink(missing_ok=True)
  shutil.rmtree(folder / replay_files.FOLDER, ignore_errors=True)


def write_lineage(lineage: Sequence[Ancestry], plan: Plan) -> None:
  """Write who continued whom, as a table and as a drawing: the metric of each member by generation."""
  with (plan.folder / LINEAGE).open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(Ancestry._fields)
    writer.writerows(lineage)
  scores = {one[:2]: math.nan if one.score is None else one.score for one in lineage}
  with extras.require_extra("plot"):
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
  figure = Figure(figsize=(7, 4), layout="constrained")
  axes = figure.subplots()
  for one in lineage:
    before = (max(0, one.generation - 1), one.parent)
    axes.plot(
      [before[0], one.generation],
      [scores[before], scores[one[:2]]],
      "C0.-" if one.parent == one.member else "C1.--",
    )
  axes.set(xlabel="generation", ylabel=plan.measure.metric, title="dashed: a member continues another one")
  axes.grid(alpha=0.3)
  figure.savefig(plan.folder / DRAWING, dpi=120)
