"""Physics speed compared with MuJoCo C (`mujoco.batch.Batch`), with equal states, controls and threads.

`python -m benchmarks.physics.speed [CASE ...]` prints the named cases.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from mujoco.batch import Batch
from numpy.typing import NDArray
from torch import Tensor

import physics
from benchmarks import cases
from benchmarks.physics import models
from benchmarks.report import check_names, compare, line, start
from gpurobot.device import threads
from physics import parity
from physics.dynamics.kinematics import HINGE, SLIDE

Array = NDArray[np.float64]
SHIFT = 0.1  # largest start offset of a joint [rad or m], and at most a twentieth of its range


class Situation(NamedTuple):
  """Start state and controls of a measurement."""

  state: Tensor  # of physics.Simulation.get_state
  qpos: Array  # [num_envs, nq]
  qvel: Array  # [num_envs, nv]
  qacc_warmstart: Array  # [num_envs, nv]
  controls: Tensor  # [steps, num_envs, nu]


def home(model: physics.Model) -> tuple[Array, Array]:
  """Return the pose [nq] and controls [nu] of the first keyframe, or the default pose and mean controls."""
  if model.mj.nkey:
    return model.mj.key_qpos[0], model.mj.key_ctrl[0]
  return model.qpos0, model.actuator_ctrlrange.mean(axis=1)


def random_controls(model: physics.Model, case: cases.PhysicsCase, steps: int, seed: int) -> Tensor:
  """Return random controls [steps, num_envs, nu], uniform around home and clipped to the control ranges."""
  low, high = torch.tensor(model.actuator_ctrlrange, dtype=torch.float32).T
  middle = torch.tensor(home(model)[1], dtype=torch.float32)
  generator = torch.Generator().manual_seed(seed)
  unit = 2 * torch.rand(steps, case.num_envs, model.nu, generator=generator) - 1
  return (middle + case.spread * (high - low) / 2 * unit).clamp(low, high)


def shifts(model: physics.Model) -> Tensor:
  """Return the largest start offset of each number of the pose [nq] from home."""
  result = torch.zeros(model.nq)
  for joint in np.flatnonzero(np.isin(model.jnt_type, (HINGE, SLIDE))):
    low, high = model.jnt_range[joint]
    within = (high - low) / 20 if model.jnt_limited[joint] else np.inf
    result[model.jnt_qposadr[joint]] = min(SHIFT, within)
  return result


def find_situation(case: cases.PhysicsCase, sim: physics.Simulation) -> Situation:
  """Simulate every environment from near home to the situation of the case; return the situation."""
  generator = torch.Generator().manual_seed(0)
  sim.reset()
  start = torch.tensor(home(sim.model)[0], dtype=torch.float32)
  sim.qpos.copy_(start + shifts(sim.model) * (2 * torch.rand(sim.qpos.shape, generator=generator) - 1))
  sim.qvel.copy_(0.1 * torch.randn(sim.qvel.shape, generator=generator))
  for ctrl in random_controls(sim.model, case, case.warm, seed=1):
    sim.ctrl.copy_(ctrl)
    sim.step(cases.SUBSTEPS)
  return Situation(
    state=sim.get_state(),
    qpos=sim.qpos.double().cpu().numpy(),
    qvel=sim.qvel.double().cpu().numpy(),
    qacc_warmstart=sim.qacc_warmstart.double().cpu().numpy(),
    controls=random_controls(sim.model, case, case.steps, seed=2),
  )


def own_run(sim: physics.Simulation, start: Situation) -> Callable[[], float]:
  """Return a function that measures the speed of this engine in a situation [substeps/s]."""

  def measure() -> float:
    sim.set_state(start.state)
    begin = time.perf_counter()
    for ctrl in start.controls:
      sim.ctrl.copy_(ctrl)
      sim.step(cases.SUBSTEPS)
    return len(start.controls) * sim.num_envs * cases.SUBSTEPS / (time.perf_counter() - begin)

  return measure


def peer_run(batch: Batch, start: Situation) -> Callable[[], float]:
  """Return a function that measures MuJoCo C on the first environments of a situation [substeps/s]."""
  n = batch.nsim
  controls = start.controls[:, :n].double().numpy()

  def measure() -> float:
    batch.reset()
    batch.qpos[:], batch.qvel[:] = start.qpos[:n], start.qvel[:n]
    batch.qacc_warmstart[:] = start.qacc_warmstart[:n]
    ctrl = batch.ctrl
    begin = time.perf_counter()
    for values in controls:
      ctrl[:] = values
      batch.step(nstep=cases.SUBSTEPS)
    return len(controls) * n * cases.SUBSTEPS / (time.perf_counter() - begin)

  return measure


def check(sim: physics.Simulation, start: Situation) -> dict[str, float]:
  """Repeat the run without timing; return figures that show whether its speed is valid, see `acceptable`."""
  sim.set_state(start.state)
  overflow, iterations = 0, torch.zeros(len(start.controls), sim.num_envs)
  for step, ctrl in enumerate(start.controls):
    sim.ctrl.copy_(ctrl)
    sim.step(cases.SUBSTEPS)
    overflow += int(sim.overflow.sum())
    iterations[step] = sim.solver_niter
  every = max(1, sim.num_envs // cases.PARITY_STATES)
  sim.forward()
  fields = [x[::every].double().numpy() for x in (sim.qpos, sim.qvel, sim.ctrl, sim.qacc)]
  states, qacc = parity.States(*fields[:3]), fields[3]
  error = parity.relative_error(qacc, parity.reference(sim.model, states).qacc)
  rounding = parity.one_ulp_effect(sim.model, states).qacc
  return {
    "overflow": overflow,
    "solver_iterations": float(iterations.mean()),
    "solver_iterations_worst": int(iterations.max()),
    "parity_within_1e-4": float((error <= 1e-4).mean()),
    "parity_worst_over_bound": float((error / np.maximum(1e-4, 3 * rounding)).max()),
    "contacts": float(sim.contact_count.double().mean()),
  }


def acceptable(model: physics.Model, found: dict[str, float]) -> bool:
  """Return whether no contact was dropped, all solves converged and sampled states agree with MuJoCo."""
  converged = found["solver_iterations_worst"] < model.iterations
  agrees = found["parity_within_1e-4"] >= 0.95 and found["parity_worst_over_bound"] <= 1.0
  return found["overflow"] == 0 and converged and agrees


def measure(case: cases.PhysicsCase, name: str, count: int) -> None:
  """Print the speeds of both engines with a number of threads, and their ratio."""
  sim = physics.Simulation(models.load(case.robot), case.num_envs, threads=count)
  start = find_situation(case, sim)
  batch = Batch(sim.model.mj, case.peer_envs, nthread=count)
  compare(name, {"gpurobot": own_run(sim, start), "mujoco": peer_run(batch, start)}, case.repetitions)


def run(names: Sequence[str] = ()) -> None:
  """Print the speeds [substeps/s], ratios and checks of the named cases, or of all.

  Torch gets one thread, because its idle threads would spin on the core of the engine's second thread.
  """
  check_names(names, [case.name for case in cases.PHYSICS])
  with threads.use(1):
    for case in cases.PHYSICS:
      if not names or case.name in names:
        _run(case, f"physics.{case.name}")


def _run(case: cases.PhysicsCase, name: str) -> None:
  """Print the speeds and checks of a case."""
  for count in cases.THREADS:
    measure(case, f"{name}.threads{count}", count)
  sim = physics.Simulation(models.load(case.robot), case.num_envs)
  line(f"{name}.operations", sim.program.count_operations())
  line(f"{name}.bytes_per_env", sim.bytes_per_env)
  found = check(sim, find_situation(case, sim))
  for what, value in found.items():
    line(f"{name}.{what}", value)
  line(f"{name}.acceptable", int(acceptable(sim.model, found)))


if __name__ == "__main__":
  start(run)
