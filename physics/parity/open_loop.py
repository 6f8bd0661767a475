"""Open-loop rollouts compared with MuJoCo C; its own sensitivity to float32 bounds the divergence."""

import dataclasses
from typing import Any

import numpy as np
import torch

from physics.engines import MujocoSimulation
from physics.model.model import Bools, Floats, Model
from physics.parity.compare import SINGLE, Find, Trial, searches
from physics.parity.finding import Finding
from physics.parity.reference import converging, perturbed, perturbed_states, relative_error
from physics.parity.states import HOLD, States, random_controls, random_states

ROLLOUT = "rollout qpos"  # the quantity of the finding
STEPS = 100
ENVIRONMENTS = 16  # that are compared; the simulation may have more
SHADOWS = 6  # perturbed runs of MuJoCo C
FACTOR = 3.0  # bound of our divergence, relative to the widest of theirs
FLOOR = 1e-6
LOST = 0.1  # divergence of MuJoCo's own runs beyond which there is nothing to compare
RESOLUTION = 5e-7  # [m] of a searched depth in float32: a few roundings of positions of a metre


def rollout(model: Model, simulation: Any, seed: int = 0, find: Find | None = None) -> Finding:
  """Compare a float32 simulation of at least 16 environments with MuJoCo C, from random states, open loop.

  Shadow runs of MuJoCo C diverge from the reference too: their states and constants are moved by one
  float32 unit, their states are rounded to float32 after every step, and their searches for contacts end
  where those in float32 do. The finding has, for each time, the median over the environments of the greatest
  divergence so far. Its bound is `FACTOR` times the widest shadow's. Once these runs have parted, or
  MuJoCo C has reset a diverged state, there is no bound. Where contacts are searched, an environment counts
  until the engines find different ones, if its divergence would be too large otherwise; once fewer than half
  of them count, there is no bound either. `find` is as in `Trial`.
  """
  random = np.random.default_rng(seed)
  states = random_states(model, ENVIRONMENTS, seed)
  controls = [
    np.stack([random_controls(model, random) for _ in range(ENVIRONMENTS)]) for _ in range(STEPS // HOLD)
  ]
  simulation.reset()
  states.write_to(_First(simulation))
  reference = MujocoSimulation(model, ENVIRONMENTS, (), mj=converging(model.mj))
  states.write_to(reference)
  expected = _run(reference, controls)
  divergence = _divergence(_run(_First(simulation), controls), expected)
  spread = np.zeros_like(divergence)
  for _ in range(SHADOWS):
    moved = perturbed(model.mj, random)
    moved.opt.ccd_tolerance = RESOLUTION
    shadow = MujocoSimulation(model, ENVIRONMENTS, (), mj=moved)
    perturbed_states(model, states, random).write_to(shadow)
    spread = np.maximum(spread, _divergence(_run(shadow, controls, rounded=True), expected))
  finding = _finding(divergence, spread, np.ones(divergence.shape, bool))
  if finding.holds or not searches(model):
    return finding
  before = np.concatenate([states.qpos[None], expected[:-1]])
  return _finding(divergence, spread, ~_parted(model, states, before, find))


def _finding(divergence: Floats, spread: Floats, counts: Bools) -> Finding:
  """Compare the divergence [steps, environments] with the shadows', where environments count."""
  masked = (np.ma.array(each, mask=~counts) for each in (divergence, spread))
  ours, own = (np.ma.median(each, axis=1).filled(np.inf) for each in masked)
  too_few = counts.mean(axis=1) < 0.5
  return Finding(ROLLOUT, ours, np.where((own > LOST) | too_few, np.inf, FACTOR * own + FLOOR))


def _parted(model: Model, start: States, qpos: Floats, find: Find | None = None) -> Bools:
  """Return where [steps, environments] the engines have found different contacts up to a step.

  `qpos` [steps, environments, nq] are the positions of MuJoCo C before each step.
  """
  rows = np.tile(np.arange(len(start)), len(qpos))
  sane = np.where(np.isfinite(qpos), qpos, model.qpos0).reshape(-1, model.nq)
  states = dataclasses.replace(start[rows], qpos=sane)
  alike = Trial(model, states, find).alike(SINGLE).reshape(qpos.shape[:2])
  return np.logical_or.accumulate(~alike, axis=0)


class _First:
  """A view of the first environments of a simulation, which may have more."""

  def __init__(self, simulation: Any) -> None:
    self._simulation = simulation

  def __getattr__(self, name: str) -> Any:
    value = getattr(self._simulation, name)
    return value[:ENVIRONMENTS] if isinstance(value, torch.Tensor) else value


def _run(simulation: Any, controls: list[Floats], rounded: bool = False) -> Floats:
  """Return the positions [steps, environments, nq] of a rollout; nan after MuJoCo C has reset one."""
  trace = []
  time, resets = torch.full((ENVIRONMENTS, 1), -1.0), isinstance(simulation, MujocoSimulation)
  is_reset = torch.zeros(ENVIRONMENTS, dtype=torch.bool)
  for control in controls:
    simulation.ctrl[:] = torch.from_numpy(control.astype(np.float32))
    for _ in range(HOLD):
      simulation.step()
      if resets:
        is_reset |= (simulation.time <= time)[:, 0]
        time = simulation.time.clone()
      trace.append(simulation.qpos.double().cpu().numpy().copy())
      trace[-1][is_reset.numpy()] = np.nan
      for state in (simulation.qpos, simulation.qvel) if rounded else ():
        state[:] = state.float()
  return np.stack(trace)


def _divergence(found: Floats, expected: Floats) -> Floats:
  """Return the greatest relative deviation up to each time [steps, environments]."""
  error = np.stack([relative_error(a, b) for a, b in zip(found, expected, strict=True)])
  return np.maximum.accumulate(np.nan_to_num(error, nan=np.inf))
