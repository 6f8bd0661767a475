"""Sweep over seeds and settings: python -m gpurobot.sweep task=ant seed=0,1,2 ppo.lr=1e-4,3e-4.

Every key of train.py takes one value or several, separated by commas (a list in brackets is one value), or
with search=random, sobol or pbt a range: ppo.lr=log:1e-4..1e-2. Each combination is one run of train.py in
its own folder. Started again, the sweep continues where it stopped.
"""

import dataclasses
import functools
import itertools
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO, cast

from rich.console import Console

import tasks
from gpurobot import extras
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.run.best_policy import return_of
from gpurobot.run.display import PlainConsole
from gpurobot.run.folder import make_folder
from gpurobot.run.interrupt import UNREAD, Interrupt
from gpurobot.run.output import Output
from gpurobot.search import pbt
from gpurobot.search.launch import Launcher, Start, execute, show, start
from gpurobot.search.pruning import Prune, above_median, best, parts, prune_trials
from gpurobot.search.results import compare, report
from gpurobot.search.space import Choices, Search, Space, draw, grid, parse
from gpurobot.search.trial import Measure, Mode, Trial, make_trial
from gpurobot.settings.config import ConfigError, TrainConfig, assign, leaves, option
from gpurobot.shell import cli, help_text
from gpurobot.shell.programs import HELP

MANY, MOST = 100, 10_000  # runs of a sweep: to check MANY takes seconds, and nobody waits for MOST
MORE = """
Every key of train.py is allowed too, with one value or several: seed=0,1,2 ppo.hidden=[64,64],[256,128]
With search=random, sobol or pbt also ranges: ppo.gamma=0.9..0.99 ppo.lr=log:1e-4..1e-2
"""


@dataclasses.dataclass
class Sweep:
  """Sweep over seeds and settings."""

  folder: str = option("runs/sweep/<task>", "folder of the results and of the run folders")
  jobs: int = option(1, "number of runs at a time; they divide the cores among them", low=1)
  launcher: Launcher = option(Launcher.local, "where runs run: local, this machine; ray, a Ray cluster")
  metric: str = option("return", "column of the runs' logs that settings are compared by, such as success")
  mode: Mode = option(Mode.max, "best metric: max, the largest; min, the smallest, such as an error's")
  level: float | None = option(None, "level of the metric; the time until runs first reach it is reported")
  search: Search = option(
    Search.grid,
    "settings: grid, all combinations; random or sobol, samples; pbt, a population with changing settings",
  )
  samples: int = option(16, "settings that search=random and sobol draw; members of search=pbt", low=1)
  search_seed: int = option(0, "seed of the choices of the search", low=0)
  prune: Prune = option(
    Prune.none, "settings that stop early: none; median, below the median; halving, all but the best"
  )
  rungs: int = option(5, "parts of a run after which prune=median compares", low=2)
  reduction: int = option(3, "prune=halving keeps one in this many settings at a time", low=2)
  generations: int = option(10, "parts of a run after which search=pbt replaces and perturbs", low=2)
  exploit: float = option(
    0.25, "share of members, the worst, that search=pbt replaces by the best", low=0.01, high=0.5
  )


def plan(argv: list[str]) -> tuple[Sweep, list[Trial]]:
  """Return the sweep's settings and its trials; raise ConfigError on a bad argument.

  A combination that train.py rejects ends the sweep with the same message.
  """
  settings, space = read(argv)
  return settings, make_trials(settings, space)


def read(argv: list[str]) -> tuple[Sweep, Space]:
  """Return the sweep's settings, and the choices for each key; raise ConfigError on a bad argument."""
  given = dict(word.partition("=")[::2] for word in argv)
  text = given.get("task", TrainConfig().task)
  names = text.split(",")
  known = [leaves(cli.parse([f"task={name}"], tasks.load, World())[0]) for name in names]
  own = leaves(Sweep())
  values = cli.given_words(argv, dict.fromkeys(itertools.chain(own, *known)))
  settings = assign(Sweep(), {key: value for key, value in values.items() if key in own})
  settings.folder = settings.folder.replace("<task>", ",".join(Path(name).stem for name in names))
  if {"run_dir", "resume"} & set(values):
    raise ConfigError("a sweep sets run_dir and resume itself; write folder=<folder of the sweep>")
  every = {key: leaf for group in reversed(known) for key, leaf in group.items()}
  space = {key: parse(key, value, every[key]) for key, value in values.items() if key not in own}
  space.setdefault("seed", Choices((str(TrainConfig().seed),)))
  if settings.search is Search.pbt:
    check_population(settings, space)
  return settings, space


def check_population(settings: Sweep, space: Space) -> None:
  """Raise ConfigError if settings do not suit population-based training."""
  extras.check("plot")  # for the drawing at the end
  pbt.check_space(space)
  if settings.samples < 2:
    raise ConfigError("search=pbt needs two members or more; write samples=8")
  if settings.prune is not Prune.none:
    raise ConfigError(f"search=pbt replaces its worst members itself; write no prune={settings.prune}")


def make_trials(settings: Sweep, space: Space) -> list[Trial]:
  """Return a trial for each setting and seed, or for each member of a population's first generation.

  Raises ConfigError if one of them is rejected.
  """
  if settings.search is Search.pbt:
    return pbt.make_generation(population(settings, space), 0, first_members(settings, space), [])
  count = math.prod(len(values.words) for values in space.values() if isinstance(values, Choices))
  if count > MOST:
    raise ConfigError(f"a sweep of {count:,} runs: at most {MOST:,}; give fewer values")
  if settings.search is Search.grid:
    chosen = list(grid(space))
  else:
    seeds = space["seed"]
    others = {key: values for key, values in space.items() if key != "seed"}
    drawn = draw(others, settings.search, settings.samples, settings.search_seed)
    chosen = [values | seed for values in drawn for seed in grid({"seed": seeds})]
  if len(chosen) > MANY:
    print(f"{len(chosen):,} runs: checking their settings", flush=True)
  varying = {key for key, values in space.items() if not isinstance(values, Choices) or len(values.words) > 1}
  folder = Path(settings.folder)
  measure = measured(settings)
  return [make_trial(values, varying, folder, settings.jobs, measure) for values in chosen]


def main(argv: list[str]) -> None:
  """Run the sweep given in `argv`, or print help."""
  with cli.user_errors(argv, World()):
    if {*HELP} & {*argv}:
      print(help_text.of_settings(Sweep(), "python -m gpurobot.sweep") + MORE)
    else:
      compete(*read(argv))


def compete(settings: Sweep, space: Space) -> None:
  """Run all that is not finished yet, then compare all runs.

  Exits with status 1 if a run failed, or with the status of the signal that interrupted the sweep.
  """
  interrupt, begin = Interrupt(), starter(settings.launcher)
  console = open_console(interrupt)
  say = functools.partial(console.print, soft_wrap=True)
  run = functools.partial(execute, jobs=settings.jobs, say=say, interrupt=interrupt, begin=begin)
  trials = [] if settings.search is Search.pbt else make_trials(settings, space)
  make_folder("folder", Path(settings.folder))  # not where a trial is rejected
  if settings.search is Search.pbt:
    say(f"{settings.samples} members in {settings.folder}, {settings.generations} generations")
    trials = pbt.evolve(first_members(settings, space), population(settings, space), run)
    kept = Path(settings.folder) / checkpoint.BEST
    if (mean := return_of(kept)) is not None:
      say(f"best policy of all generations, with a mean return of {show(mean)}: {kept}")
  else:
    done = sum(trial.is_finished() for trial in trials)
    say(f"{len(trials)} runs in {settings.folder}, {done} of them already finished")
    trials = prune(settings, trials, run)
  report(compare(trials, settings.metric), settings.metric, Path(settings.folder), console)
  if not all(trial.is_finished() for trial in trials):
    raise SystemExit(interrupt.status or 1)


def open_console(interrupt: Interrupt) -> Console:
  """Return the console of a sweep, which is interrupted if its reader leaves."""

  def note(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
      interrupt.request(UNREAD)

  width = None if sys.stdout.isatty() else 160
  file = cast("TextIO", Output(sys.stdout, note))
  return PlainConsole(file=file, highlight=False, markup=False, width=width)


def starter(launcher: Launcher) -> Start:
  """Return the function that starts trials; raise ConfigError if Ray is not installed."""
  if launcher is Launcher.local:
    return start
  with extras.require_extra("ray"):
    from gpurobot.search import ray_launch  # noqa: PLC0415 (an extra)
  return ray_launch.connect()


def population(settings: Sweep, space: Space) -> pbt.Plan:
  """Return the plan of a population's training."""
  numbers = (settings.generations, settings.exploit, settings.search_seed, settings.jobs)
  return pbt.Plan(space, Path(settings.folder), *numbers, measured(settings))


def measured(settings: Sweep) -> Measure:
  """Return the measure to compare trials by."""
  return Measure(settings.metric, settings.mode, settings.level)


def first_members(settings: Sweep, space: Space) -> list[pbt.Member]:
  """Return the members of a population's first generation."""
  drawn = draw(space, Search.sobol, settings.samples, settings.search_seed)
  return [pbt.Member(values, index) for index, values in enumerate(drawn)]


def prune(settings: Sweep, trials: Sequence[Trial], run: pbt.Run) -> list[Trial]:
  """Run all trials, each until the rule of pruning ends it, and return them."""
  groups: dict[tuple[str, ...], list[Trial]] = {}
  for trial in trials:
    groups.setdefault(trial.setting, []).append(trial)
  if settings.prune is Prune.none:
    run(trials)
    return list(trials)
  ends = parts(settings.prune, len(groups), settings.rungs, settings.reduction)
  halve = functools.partial(best, reduction=settings.reduction)
  rule = halve if settings.prune is Prune.halving else above_median
  return prune_trials([*groups.values()], ends, rule, run)


if __name__ == "__main__":
  main(sys.argv[1:])
