"""Comparison of the engine with MuJoCo C on any model, as a table: `python -m physics.parity robot.xml`."""

import argparse
import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np

from physics.load import load_model
from physics.model.model import Model
from physics.parity.early_stop import stopping_errors
from physics.parity.finding import Finding
from physics.parity.open_loop import ENVIRONMENTS
from physics.parity.reference import ITERATIONS
from physics.parity.states import recorded_states
from physics.parity.verdict import FLOAT32, FLOAT64, PRECISIONS, compare, verdict
from physics.simulation import Simulation

HEADINGS = {FLOAT64: "float64, uncompiled", FLOAT32: "float32 kernel"}
ROW = "  {:<22}{:>10}{:>10}{:>10}  {}"
EXPLANATION = """Errors are relative to the larger of 1 and the reference's magnitude.
Errors of contacts are in metres. "with given contacts" is the share of states in which a search has several
right answers, so that MuJoCo C was given the engine's contacts; "with other corners" is the share in which
other corners of the same faces are contacts and MuJoCo C could not be given them; "states left open" is the
share with other contacts, or in which rounding decides whether shapes touch or, where axes of capsules meet
within 1e-6 m, in which direction. The other rows leave out the last two.
"worst" is the error with the largest ratio to its bound, and "allowed" is that bound."""


def main(arguments: list[str] | None = None) -> int:
  """Print the table; return 0 if all agrees, 1 if something does not, 2 if there is no model to compare."""
  parser = argparse.ArgumentParser("python -m physics.parity", description=__doc__)
  add = parser.add_argument
  add("model", type=Path, help="MJCF or URDF file")
  add("--states", type=int, default=256, help="number of states to compare (default: 256)")
  add("--seed", type=int, default=0, help="seed of states and controls (default: 0)")
  add("--precision", choices=PRECISIONS, help="compare in one of them; float64 builds no kernel")
  options = parser.parse_args(arguments)
  mujoco.set_mju_user_warning(lambda _: None)  # of states that are not sane, which are counted
  if options.states < ENVIRONMENTS:
    parser.error(f"--states {options.states}: a rollout needs {ENVIRONMENTS} or more")
  options.precisions = [options.precision] if options.precision else PRECISIONS
  return _compare(options)


def _compare(options: argparse.Namespace) -> int:
  """Print the comparison of one file."""
  try:
    model = _load(options.model)
  except (OSError, ValueError) as error:
    print("error:", " ".join(str(error).split()), file=sys.stderr)
    return 2
  findings: list[Finding] = []
  last = ""
  for precision, finding in compare(model, options.states, options.seed, options.precisions):
    if precision != last:
      print(
        ("\n" if last else "") + ROW.format(HEADINGS[precision], "median", "worst", "allowed", "").rstrip()
      )
    last = precision
    findings.append(finding)
    print(_row(finding))
  print(f"\n{EXPLANATION}\n")
  if model.iterations < ITERATIONS and FLOAT32 in options.precisions:
    print(_stopped(model, options.states, options.seed))
  print(verdict(findings, model))
  return 0 if all(finding.holds for finding in findings) else 1


def _stopped(model: Model, count: int, seed: int) -> str:
  """Return the errors of the engine and MuJoCo C after the file's number of iterations."""
  states = recorded_states(model, count, seed=seed)
  errors = stopping_errors(model, states, Simulation(model, count, outputs=("qacc",)))
  (engine, engine_tenth), (mujoco, mujoco_tenth) = (np.quantile(error, (0.5, 0.9)) for error in errors)
  return (
    f"stopped after iterations={model.iterations}, as the file asks: qacc is off by {engine:.1e}"
    f" (MuJoCo C: {mujoco:.1e}) in the median state,"
    f" by {engine_tenth:.1e} ({mujoco_tenth:.1e}) or more in a tenth of the states"
  )


def _load(path: Path) -> Model:
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
