"""Physics speed compared with mujoco_warp on one device: python -m benchmarks.gpu_engine [key=value ...].

States, controls and solver are equal; on CUDA, the control step of each engine is one graph. `name: value`
lines give substeps/s, the median ratio over repetitions, dropped contacts and the difference of the results.
"""

import dataclasses
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import mujoco
import mujoco_warp
import torch
import warp as wp
from torch import Tensor

import physics
from benchmarks import cases, engine, models
from benchmarks.on_device import Own, controls_of, repeated, timed
from benchmarks.report import line
from gpurobot.device.distributed import World
from gpurobot.settings.config import assign, leaves, option, pairs

ROOM = 2.0  # size of mujoco_warp's arrays, relative to the largest need in a sample of runs
SAMPLED = 64  # number of sampled runs


CASES = ["ant", "humanoid_heap", "quadruped_on_rough_ground", "arm_and_cube_on_table"]
SIZES = [4096, 16384, 65536]


@dataclasses.dataclass
class Settings:
  """Settings of a comparison."""

  device: str = option("auto", "device of both engines: cpu, cuda, cuda:<index>, or auto: cuda if available")
  cases: list[str] = option(CASES, "names of cases in `cases.PHYSICS`")  # noqa: RUF009 (a field)
  num_envs: list[int] = option(SIZES, "numbers of environments to measure")  # noqa: RUF009


class Peer:
  """mujoco_warp, with arrays as small as the states allow."""

  def __init__(
    self, model: physics.Model, num_envs: int, device: torch.device, start: engine.Situation
  ) -> None:
    self.device = wp.device_from_torch(device)
    contacts, constraints = sizes(model.mj, start)
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

  def start(self, start: engine.Situation) -> None:
    """Set the start state of the run."""
    for name in ("qpos", "qvel", "qacc_warmstart"):
      view = wp.to_torch(getattr(self.data, name))
      view.copy_(repeated(torch.from_numpy(getattr(start, name)).float(), len(view)))
    self.data.time.zero_()
    self.data.overflow.zero_()

  def dropped(self) -> int:
    """Return the number of environments that dropped contacts or constraints since the start."""
    return int(wp.to_torch(self.data.overflow).count_nonzero())


def sizes(mj: mujoco.MjModel, start: engine.Situation) -> tuple[int, int]:
  """Return the capacities for contacts and for constraints of an environment, from runs in MuJoCo C."""
  data, most = mujoco.MjData(mj), (1, 1)
  runs = start.controls.transpose(0, 1).double().cpu().numpy()
  for qpos, qvel, run in zip(start.qpos[:SAMPLED], start.qvel[:SAMPLED], runs, strict=False):
    mujoco.mj_resetData(mj, data)
    data.qpos[:], data.qvel[:] = qpos, qvel
    for ctrl in run.repeat(cases.SUBSTEPS, 0):
      data.ctrl[:] = ctrl
      mujoco.mj_step(mj, data)
      most = max(most[0], data.ncon), max(most[1], data.nefc)
  return int(ROOM * most[0]), int(ROOM * most[1])


def difference(own: Own, peer: Peer, start: engine.Situation, controls: Tensor) -> Tensor:
  """Return the largest difference of qpos [num_envs] after one step with controls [steps, num_envs, nu]."""
  for one in (own, peer):
    one.start(start)
    one.ctrl.copy_(controls[0])
    one.step()
  return (own.qpos - peer.qpos).abs().amax(1)


def compare(case: cases.PhysicsCase, num_envs: int, start: engine.Situation, device: torch.device) -> None:
  """Print the speeds of both engines and the checks that make them comparable."""
  model, name = models.load(case.robot), f"gpu.{case.name}.envs{num_envs}"
  own, peer = Own(model, num_envs, device), Peer(model, num_envs, device, start)
  controls = controls_of(start, num_envs, device)
  ours, theirs = timed(own, start, controls), timed(peer, start, controls)
  ours(), theirs()
  found = [(ours(), theirs()) for _ in range(case.repetitions)]
  line(f"{name}.gpurobot", statistics.median(mine for mine, _ in found))
  line(f"{name}.mujoco_warp", statistics.median(other for _, other in found))
  line(f"{name}.ratio", statistics.median(mine / other for mine, other in found))
  line(f"{name}.dropped", own.dropped())
  line(f"{name}.mujoco_warp_dropped", peer.dropped())
  apart = difference(own, peer, start, controls)
  line(f"{name}.apart_median", float(apart.median()))
  line(f"{name}.apart_worst", float(apart.max()))


def run(words: Sequence[str] = ()) -> None:
  """Measure and report."""
  settings = assign(Settings(), pairs([*words], leaves(Settings())))
  device = World().device(settings.device)
  known = {case.name: case for case in cases.PHYSICS}
  for case in (known[name] for name in settings.cases):
    sim = physics.Simulation(models.load(case.robot), case.num_envs, device)
    line(f"gpu.{case.name}.operations", sim.program.count_operations())
    line(f"gpu.{case.name}.bytes_per_env", sim.bytes_per_env)
    start = engine.situation(case, sim)
    for num_envs in settings.num_envs:
      compare(case, num_envs, start, device)


if __name__ == "__main__":
  run(sys.argv[1:])
