"""Physics steps per second beside MuJoCo C (`mujoco.batch.Batch`): same states, controls and threads."""

import functools
import statistics
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
import torch
from mujoco.batch import Batch
from numpy.typing import NDArray
from torch import Tensor

import physics
from benchmarks import cases
from benchmarks.report import line
from physics import parity
from physics.kinematics import FREE

Array = NDArray[np.float64]
ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@functools.cache
def load(robot: str) -> physics.Model:
  """Return Gymnasium's model of a robot, with Euler and Newton whatever the file asks."""
  return physics.load_model(ASSETS / f"{robot}.xml", integrator="Euler")


class Situation(NamedTuple):
  """Where a measurement starts and the controls that it applies."""

  state: Tensor  # of physics.Simulation.get_state
  qpos: Array  # [num_envs, nq]
  qvel: Array  # [num_envs, nv]
  qacc_warmstart: Array  # [num_envs, nv]
  controls: Tensor  # [steps, num_envs, nu]


def random_controls(model: physics.Model, steps: int, num_envs: int, seed: int) -> Tensor:
  """Return controls [steps, num_envs, nu], uniform over each actuator's range."""
  low, high = torch.tensor(model.actuator_ctrlrange, dtype=torch.float32).T
  generator = torch.Generator().manual_seed(seed)
  return low + (high - low) * torch.rand(steps, num_envs, model.nu, generator=generator)


def situation(case: cases.PhysicsCase, sim: physics.Simulation) -> Situation:
  """Bring every environment from near the default pose into the situation of the case."""
  generator = torch.Generator().manual_seed(0)
  joints = slice(7, None) if sim.model.jnt_type[0] == FREE else slice(None)
  sim.reset()
  sim.qpos[:, joints] += 0.2 * torch.rand(sim.qpos[:, joints].shape, generator=generator) - 0.1
  sim.qvel.copy_(0.1 * torch.randn(sim.qvel.shape, generator=generator))
  for ctrl in random_controls(sim.model, case.warm, case.num_envs, seed=1):
    sim.ctrl.copy_(ctrl)
    sim.step(cases.SUBSTEPS)
  return Situation(
    state=sim.get_state().clone(),
    qpos=sim.qpos.double().numpy(),
    qvel=sim.qvel.double().numpy(),
    qacc_warmstart=sim.qacc_warmstart.double().numpy(),
    controls=random_controls(sim.model, case.steps, case.num_envs, seed=2),
  )


def own_run(sim: physics.Simulation, start: Situation) -> Callable[[], float]:
  """Return a measurement of this project's engine: substeps per second from the start of the situation."""

  def measure() -> float:
    sim.set_state(start.state)
    begin = time.perf_counter()
    for ctrl in start.controls:
      sim.ctrl.copy_(ctrl)
      sim.step(cases.SUBSTEPS)
    return len(start.controls) * sim.num_envs * cases.SUBSTEPS / (time.perf_counter() - begin)

  return measure


def peer_run(batch: Batch, start: Situation) -> Callable[[], float]:
  """Return a measurement of MuJoCo C on the first environments of the same situation."""
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
  """Repeat the run untimed and return what could make its speed worthless; see `acceptable`."""
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
    "height_mean": float(sim.xpos[:, 1, 2].mean()),
  }


def acceptable(model: physics.Model, found: dict[str, float]) -> bool:
  """Tell whether no contact was dropped, every solve converged, and the sampled states agree with MuJoCo."""
  converged = found["solver_iterations_worst"] < model.iterations
  agrees = found["parity_within_1e-4"] >= 0.95 and found["parity_worst_over_bound"] <= 1.0
  return found["overflow"] == 0 and converged and agrees


def peak(threads: int) -> float:
  """Return the float32 operations per second of a matrix product: what the processor can do at most."""
  before = torch.get_num_threads()
  torch.set_num_threads(threads)
  a, b = torch.rand(2, 1024, 1024)
  seconds = min(timeit.repeat(lambda: a @ b, number=5, repeat=5)) / 5
  torch.set_num_threads(before)
  return 2 * 1024**3 / seconds


def measure(case: cases.PhysicsCase, name: str, threads: int) -> None:
  """Print the speeds of both engines at a number of threads, and the ratio's median over the repetitions.

  The fraction of the peak counts each operation of the traced program once, however often its loops run.
  """
  sim = physics.Simulation(load(case.robot), case.num_envs, threads=threads)
  start = situation(case, sim)
  own, peer = own_run(sim, start), peer_run(Batch(sim.model.mj, case.peer_envs, nthread=threads), start)
  own(), peer()
  pairs = [(own(), peer()) for _ in range(case.repetitions)]
  speed = statistics.median(ours for ours, _ in pairs)
  line(f"{name}.gpurobot", speed)
  line(f"{name}.mujoco", statistics.median(theirs for _, theirs in pairs))
  line(f"{name}.ratio", statistics.median(ours / theirs for ours, theirs in pairs))
  line(f"{name}.fraction_of_peak", speed * sim.program.count_operations() / peak(threads))


def run() -> None:
  """Print speeds in substeps/s, ratios, and the checks of each case.

  Torch gets one thread: its idle ones would spin on the core that the engine's second thread needs.
  """
  torch.set_num_threads(1)
  for case in cases.PHYSICS:
    name = f"physics.{case.name}"
    for threads in cases.THREADS:
      measure(case, f"{name}.threads{threads}", threads)
    line(f"{name}.goal", case.goal)
    sim = physics.Simulation(load(case.robot), case.num_envs)
    line(f"{name}.operations", sim.program.count_operations())
    found = check(sim, situation(case, sim))
    for what, value in found.items():
      line(f"{name}.{what}", value)
    line(f"{name}.acceptable", int(acceptable(sim.model, found)))


if __name__ == "__main__":
  run()
