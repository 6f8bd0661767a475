"""Physics speed on a GPU, alone or beside mujoco_warp: python -m benchmarks.physics.gpu [key=value ...].

Both engines have equal states, controls and solver, and run in turn; on CUDA the control step of each is one
graph. `name: value` lines give substeps/s and dropped contacts; beside mujoco_warp also the median ratio over
the repetitions, and the difference of the results.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import mujoco
import mujoco_warp
import torch
import warp as wp
from torch import Tensor

import physics
from benchmarks import cases
from benchmarks.physics import models
from benchmarks.physics.speed import Situation, find_situation
from benchmarks.report import check_names, compare, line, settings, start
from gpurobot.device.distributed import World
from gpurobot.device.graph import Graph, GraphRecorder
from gpurobot.settings.config import option
from physics.trace.kernel import block_on, build_kernel

ROOM = 2.0  # size of mujoco_warp's arrays, relative to the largest need in a sample of runs
SAMPLED = 64  # number of sampled runs
STEPS = 10  # control steps per measurement: the controls of a million environments are large
CASES = {case.name: case for case in cases.PHYSICS}
CHOSEN = ["ant", "humanoid_heap", "quadruped_on_rough_ground", "hand_holding_cube"]
SIZES = [4096, 16384, 65536]


@dataclasses.dataclass
class Settings:
  """Settings of a measurement."""

  device: str = option("auto", "device: cpu, cuda, cuda:<index>, or auto: cuda where there is one")
  cases: list[str] = option(CHOSEN, "names of cases in `cases.PHYSICS`")  # noqa: RUF009 (a field)
  num_envs: list[int] = option(SIZES, "numbers of environments to measure")  # noqa: RUF009
  beside: bool = option(False, "whether mujoco_warp is measured too")


class Engine(Protocol):
  """Interface of a timed engine."""

  qpos: Tensor  # [num_envs, nq]
  ctrl: Tensor  # [num_envs, nu]

  @property
  def step(self) -> Callable[[], None]:
    """The function that takes a control step."""

  def start(self, situation: Situation) -> None:
    """Set the start state of the run."""

  def dropped(self) -> int:
    """Return the number of environments, or of contacts, that were dropped."""


class Own:
  """Engine of this project."""

  def __init__(self, model: physics.Model, num_envs: int, device: torch.device) -> None:
    self.sim = physics.Simulation(model, num_envs, device)
    self.qpos, self.ctrl = self.sim.qpos, self.sim.ctrl
    self.step = Graph(self._step, GraphRecorder(device) if device.type == "cuda" else None)

  def _step(self) -> None:
    self.sim.step(cases.SUBSTEPS)

  def start(self, situation: Situation) -> None:
    """Set the start state of the run."""
    self.sim.set_state(repeated(situation.state.T, self.sim.num_envs).T.to(self.sim.device))

  def dropped(self) -> int:
    """Return the number of contacts that the last step dropped."""
    return int(self.sim.overflow.sum())


class Peer:
  """mujoco_warp, with arrays as small as the states allow."""

  def __init__(self, model: physics.Model, num_envs: int, device: torch.device, situation: Situation) -> None:
    self.device = wp.device_from_torch(device)
    contacts, constraints = capacities(model.mj, situation)
    with wp.ScopedDevice(self.device):
      self.model: Any = mujoco_warp.put_model(model.mj)
      self.data: Any = mujoco_warp.put_data(
        model.mj, mujoco.MjData(model.mj), nworld=num_envs, nconmax=contacts, njmax=constraints
      )
    self.model.opt.warn_overflow = 0  # it is counted, and printing from kernels would be timed
    self.qpos, self.ctrl = wp.to_torch(self.data.qpos), wp.to_torch(self.data.ctrl)
    self.graph: Any = None

  def _step(self) -> None:
    for _ in range(cases.SUBSTEPS):
      mujoco_warp.step(self.model, self.data)

  def step(self) -> None:
    """Take a control step: on CUDA, first without a graph, to compile, then as a graph."""
    with wp.ScopedDevice(self.device):
      if not self.device.is_cuda:
        self._step()
        return
      if self.graph is None:
        self._step()
        with wp.ScopedCapture() as capture:
          self._step()
        self.graph = capture.graph
      wp.capture_launch(self.graph, stream=wp.stream_from_torch())

  def start(self, situation: Situation) -> None:
    """Set the start state of the run."""
    for name in ("qpos", "qvel", "qacc_warmstart"):
      view = wp.to_torch(getattr(self.data, name))
      view.copy_(repeated(torch.from_numpy(getattr(situation, name)).float(), len(view)))
    self.data.time.zero_()
    self.data.overflow.zero_()

  def dropped(self) -> int:
    """Return the number of environments that dropped contacts or constraints since the start."""
    return int(wp.to_torch(self.data.overflow).count_nonzero())


def capacities(mj: mujoco.MjModel, situation: Situation) -> tuple[int, int]:
  """Return the capacities for contacts and for constraints of an environment, from runs in MuJoCo C."""
  data, most = mujoco.MjData(mj), (1, 1)
  runs = situation.controls.transpose(0, 1).double().cpu().numpy()
  for qpos, qvel, run in zip(situation.qpos[:SAMPLED], situation.qvel[:SAMPLED], runs, strict=False):
    mujoco.mj_resetData(mj, data)
    data.qpos[:], data.qvel[:] = qpos, qvel
    for ctrl in run.repeat(cases.SUBSTEPS, 0):
      data.ctrl[:] = ctrl
      mujoco.mj_step(mj, data)
      most = max(most[0], data.ncon), max(most[1], data.nefc)
  return int(ROOM * most[0]), int(ROOM * most[1])


def repeated(values: Tensor, count: int) -> Tensor:
  """Return `count` rows: the rows of `values` [n, ...], repeated cyclically [count, ...]."""
  return values[torch.arange(count) % len(values)]


def controls_of(situation: Situation, num_envs: int, device: torch.device) -> Tensor:
  """Return the controls of a run [steps, num_envs, nu], repeated over the environments."""
  return repeated(situation.controls.to(device).transpose(0, 1), num_envs).transpose(0, 1).contiguous()


def timed(engine: Engine, situation: Situation, controls: Tensor) -> Callable[[], float]:
  """Return a function that measures an engine [substeps/s] with controls [steps, num_envs, nu]."""

  def wait() -> None:
    if controls.is_cuda:
      torch.cuda.synchronize(controls.device)

  def measure() -> float:
    engine.start(situation)
    wait()
    begin = time.perf_counter()
    for ctrl in controls:
      engine.ctrl.copy_(ctrl)
      engine.step()
    wait()
    return controls.shape[0] * controls.shape[1] * cases.SUBSTEPS / (time.perf_counter() - begin)

  return measure


def difference(own: Engine, peer: Engine, situation: Situation, controls: Tensor) -> Tensor:
  """Return the largest difference of qpos [num_envs] after one step with controls [steps, num_envs, nu]."""
  for engine in (own, peer):
    engine.start(situation)
    engine.ctrl.copy_(controls[0])
    engine.step()
  return (own.qpos - peer.qpos).abs().amax(1)


def measure(case: cases.PhysicsCase, num_envs: int, situation: Situation, beside: bool, name: str) -> None:
  """Print the speed of each engine, and the checks that make them comparable."""
  model, device = models.load(case.robot), situation.state.device
  own = Own(model, num_envs, device)
  engines: dict[str, Engine] = {"gpurobot": own}
  if beside:
    engines["mujoco_warp"] = Peer(model, num_envs, device, situation)
  controls = controls_of(situation, num_envs, device)
  runs = {engine: timed(each, situation, controls) for engine, each in engines.items()}
  compare(name, runs, case.repetitions)
  for engine, each in engines.items():
    line(f"{name}.{engine}.dropped", each.dropped())
  if beside:
    apart = difference(own, engines["mujoco_warp"], situation, controls)
    line(f"{name}.apart_median", float(apart.median()))
    line(f"{name}.apart_worst", float(apart.max()))


def describe(sim: physics.Simulation, name: str) -> None:
  """Print the size of the step kernel, on CUDA with its registers and stack per thread."""
  line(f"{name}.operations", sim.program.count_operations())
  line(f"{name}.bytes_per_env", sim.bytes_per_env)
  if sim.device.type == "cuda":
    kernel = build_kernel(sim.program, "cuda")
    found = wp.get_cuda_kernel_properties(kernel, wp.device_from_torch(sim.device), block_on("cuda"))
    line(f"{name}.registers", found["register_count"])
    line(f"{name}.stack_bytes", found["local_memory_size"])


def run(words: Sequence[str] = ()) -> None:
  """Measure and report."""
  chosen = settings(Settings(), words)
  device = World().device(chosen.device)
  check_names(chosen.cases, CASES)
  for name in chosen.cases:
    sim = physics.Simulation(models.load(CASES[name].robot), CASES[name].num_envs, device)
    situation = find_situation(CASES[name], sim)
    situation = situation._replace(controls=situation.controls[:STEPS])
    describe(sim, f"gpu.{name}")
    for num_envs in chosen.num_envs:
      measure(CASES[name], num_envs, situation, chosen.beside, f"gpu.{name}.envs{num_envs}")


if __name__ == "__main__":
  start(run)
