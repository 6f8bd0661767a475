"""Verdict on a model: whether the engine agrees with MuJoCo C, in float64, in float32 or in both."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from physics.engines import NumpySimulation
from physics.model.model import Model
from physics.parity.compare import (
  DOUBLE,
  OTHER_CORNERS,
  SINGLE,
  STATES_OPEN,
  Tolerances,
  Trial,
  outputs,
)
from physics.parity.finding import Finding
from physics.parity.kernel_search import KernelSearch
from physics.parity.open_loop import ROLLOUT, rollout
from physics.parity.random_play import random_play
from physics.parity.reference import ITERATIONS, converged
from physics.parity.states import random_states, recorded_states
from physics.simulation import Simulation

FLOAT64, FLOAT32 = "float64", "float32"
PRECISIONS = (FLOAT64, FLOAT32)
AGREES, DIFFERS = "agrees with MuJoCo C", "does not agree with MuJoCo C"  # how a verdict begins


def compare(
  model: Model, count: int, seed: int, precisions: Sequence[str] = PRECISIONS
) -> Iterator[tuple[str, Finding]]:
  """Yield each precision's findings on the three levels, with the precision's name.

  Solvers and searches for contacts go on until they converge, also if the file stops them earlier. Rollouts
  and random play are compared in float32 alone: without it, no kernel is built.
  """
  model = converged(model)
  random = Trial(model, random_states(model, count, seed))
  recorded = Trial(model, recorded_states(model, count, seed=seed))
  names = outputs(model)
  if FLOAT64 in precisions:
    exact = NumpySimulation(model, count, names)
    yield from ((FLOAT64, finding) for finding in _levels(random, recorded, exact, DOUBLE))
  if FLOAT32 in precisions:
    kernel = Simulation(model, count, outputs=names)
    yield from ((FLOAT32, finding) for finding in _in_kernel(random, recorded, kernel, seed))
    yield from ((FLOAT32, finding) for finding in random_play(model, kernel, seed))


def verdict(findings: Sequence[Finding], model: Model) -> str:
  """Return findings in one line; rollouts part once their contacts do, so that open states excuse them."""
  condition = " where both solvers converge" if model.iterations < ITERATIONS else ""
  failed = list(dict.fromkeys(finding.quantity for finding in findings if not finding.holds))
  if not failed:
    return f"{AGREES}{condition}"
  choices = {STATES_OPEN, OTHER_CORNERS}
  if choices & {*failed} and {*failed} <= {*choices, ROLLOUT}:
    if _nothing_to_compare(findings):
      return f"{AGREES}{condition} without contacts, but all of the states are left open"
    share = max(finding.error.max() for finding in findings if finding.quantity in choices)
    return f"{AGREES}{condition}, but {share:.0%} of the states are left open"
  return f"{DIFFERS}{condition}: {', '.join(failed)}"


def _nothing_to_compare(findings: Sequence[Finding]) -> bool:
  """Return whether contacts are open in all states of all levels: none of their effects was compared."""
  open_states, others = (
    np.array([finding.error.max() for finding in findings if finding.quantity == name])
    for name in (STATES_OPEN, OTHER_CORNERS)
  )
  return bool(len(others) and np.min(open_states + others) == 1.0)


def _in_kernel(random: Trial, recorded: Trial, kernel: Simulation, seed: int) -> list[Finding]:
  """Return the findings on the three levels in float32.

  NumPy finds the contacts. Where anything differs, it is compared with the effects of the kernel's contacts.
  """
  model = random.model
  findings = [*_levels(random, recorded, kernel, SINGLE), rollout(model, kernel, seed)]
  if not random.searches or all(finding.holds for finding in findings):
    return findings
  find = KernelSearch(kernel)
  random, recorded = (Trial(model, trial.states, find) for trial in (random, recorded))
  return [*_levels(random, recorded, kernel, SINGLE), rollout(model, kernel, seed, find)]


def _levels(random: Trial, recorded: Trial, simulation: Any, tolerances: Tolerances) -> Iterator[Finding]:
  yield from random.contacts(tolerances)
  yield from random.stages(simulation, tolerances)
  yield from recorded.step(simulation, tolerances)
