"""Comparison of the engine with MuJoCo C on any model, as a table: `python -m physics.parity robot.xml`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from physics.load import load_model
from physics.model.model import Model
from physics.parity.compare import (
  DOUBLE,
  OTHER_CORNERS,
  SINGLE,
  STATES_OPEN,
  Finding,
  Tolerances,
  Trial,
  outputs,
)
from physics.parity.engines import NumpySimulation
from physics.parity.open_loop import ENVIRONMENTS, ROLLOUT, rollout
from physics.parity.random_play import random_play
from physics.parity.reference import ITERATIONS, converged
from physics.parity.states import random_states, recorded_states
from physics.parity.stopped import stopping_errors
from physics.parity.survey import AGREES, LOADS, survey, table
from physics.simulation import Simulation

ROW = "  {:<22}{:>10}{:>10}{:>10}  {}"
EXPLANATION = """Errors are relative to the larger of 1 and the reference's magnitude.
Errors of contacts are in metres. "with other corners" is the share of states in which a search took other
corners of the same faces as contacts than MuJoCo C; "states left open" is that of states with other contacts,
or in which rounding decides whether shapes touch or, where axes of capsules meet within 1e-6 m, in which
direction. The other rows are without both.
"worst" is the error with the largest ratio to its bound, and "allowed" is that bound."""


def main(arguments: list[str] | None = None) -> int:
  """Print the table; return 0 if all agrees, 1 if something does not, 2 if there is no model to compare."""
  parser = argparse.ArgumentParser("python -m physics.parity", description=__doc__)
  parser.add_argument("model", help="MJCF or URDF file, or a folder of them: a table by its subfolders")
  parser.add_argument("--states", type=int, default=256, help="number of states to compare (default: 256)")
  parser.add_argument("--seed", type=int, default=0, help="seed of states and controls (default: 0)")
  parser.add_argument("--jobs", type=int, default=1, help="comparisons at a time of a folder (default: 1)")
  parser.add_argument(
    "--sample", type=int, help="number of models of each subfolder to compare (default: all)"
  )
  options = parser.parse_args(arguments)
  mujoco.set_mju_user_warning(lambda _: None)  # of states that are not sane, which are counted
  if options.states < ENVIRONMENTS:
    parser.error(f"--states {options.states}: a rollout needs {ENVIRONMENTS} or more")
  if options.sample is not None and options.sample < 1:
    parser.error(f"--sample {options.sample}: it has to be 1 or more")
  if Path(options.model).is_dir():
    return _survey(Path(options.model), options)
  try:
    model = _load(options.model)
  except (OSError, ValueError) as error:
    print("error:", " ".join(str(error).split()), file=sys.stderr)
    return 2
  findings = []
  for line in compare(model, options.states, options.seed):
    if isinstance(line, Finding):
      findings.append(line)
    print(_row(line) if isinstance(line, Finding) else line)
  print(f"\n{EXPLANATION}\n")
  condition = ""
  if model.iterations < ITERATIONS:
    condition = " where both solvers converge"
    print(_stopped(model, options.states, options.seed))
  print(_verdict(findings, condition))
  return 0 if all(finding.holds for finding in findings) else 1


def _verdict(findings: list[Finding], condition: str) -> str:
  """Return the last line; rollouts part once their contacts do, so that open states excuse them."""
  failed = list(dict.fromkeys(finding.quantity for finding in findings if not finding.holds))
  if not failed:
    return f"agrees with MuJoCo C{condition}"
  choices = {STATES_OPEN, OTHER_CORNERS}
  if choices & {*failed} and {*failed} <= {*choices, ROLLOUT}:
    share = max(finding.error.max() for finding in findings if finding.quantity in choices)
    return f"agrees with MuJoCo C{condition}, but {share:.0%} of the states are left open"
  return f"does not agree with MuJoCo C{condition}: {', '.join(failed)}"


def _survey(folder: Path, options: argparse.Namespace) -> int:
  """Print a line per model of a folder, then the table; return 0 if all agree, else 1."""
  each = [f"--states={options.states}", f"--seed={options.seed}"]
  results = []
  try:
    for result in survey(folder, each, options.jobs, options.sample, options.seed):
      if result.outcome != LOADS:
        print(f"{result.path.relative_to(folder)}: {result.outcome}", flush=True)
      results.append(result)
  except FileNotFoundError as error:
    print("error:", error, file=sys.stderr)
    return 2
  print("", *table(folder, results), sep="\n")
  return 0 if all(result.outcome in (AGREES, LOADS) for result in results) else 1


def compare(model: Model, count: int, seed: int) -> Iterator[Finding | str]:
  """Yield a heading for each kind of arithmetic, then its findings on the three levels.

  Solvers and searches for contacts go on until they converge, also if the file stops them earlier.
  """
  model = converged(model)
  random = Trial(model, random_states(model, count, seed))
  recorded = Trial(model, recorded_states(model, count, seed=seed))
  names = outputs(model)
  yield ROW.format("float64, uncompiled", "median", "worst", "allowed", "").rstrip()
  exact = NumpySimulation(model, count, names)
  yield from _levels(random, recorded, exact, DOUBLE)
  yield "\n" + ROW.format("float32 kernel", "median", "worst", "allowed", "").rstrip()
  kernel = Simulation(model, count, outputs=names)
  yield from _levels(random, recorded, kernel, SINGLE)
  yield rollout(model, kernel, seed)
  yield from random_play(model, kernel, seed)


def _stopped(model: Model, count: int, seed: int) -> str:
  """Return how far from the solution the file's number of iterations leaves the engine and MuJoCo C."""
  states = recorded_states(model, count, seed=seed)
  errors = stopping_errors(model, states, Simulation(model, count, outputs=("qacc",)))
  (engine, engine_tenth), (mujoco, mujoco_tenth) = (np.quantile(error, (0.5, 0.9)) for error in errors)
  return (
    f"stopped after iterations={model.iterations}, as the file asks: qacc is off by {engine:.1e}"
    f" (MuJoCo C: {mujoco:.1e}) in the median state,"
    f" by {engine_tenth:.1e} ({mujoco_tenth:.1e}) or more in a tenth of the states"
  )


def _levels(random: Trial, recorded: Trial, simulation: Any, tolerances: Tolerances) -> Iterator[Finding]:
  yield from random.contacts(tolerances)
  yield from random.stages(simulation, tolerances)
  yield from recorded.step(simulation, tolerances)


def _load(path: str) -> Model:
  with warnings.catch_warnings(record=True) as notes:
    warnings.simplefilter("always")
    model = load_model(path)
  for note in notes:
    print(f"note: {note.message}")
  return model


def _row(finding: Finding) -> str:
  i, verdict = finding.worst, "" if finding.holds else "<- too large"
  numbers = (np.median(finding.error), finding.error[i], finding.bound[i])
  return ROW.format(finding.quantity, *(f"{number:.1e}" for number in numbers), verdict).rstrip()


if __name__ == "__main__":
  sys.exit(main())
