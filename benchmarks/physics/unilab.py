"""UniLab's engines beside ours: the physics of a robot with a floating base, with equal threads.

`python -m benchmarks.physics.unilab python=<interpreter> scene=<MJCF file> timestep=0.01` measures all
engines in turns. UniLab (Jia et al. 2026, arXiv 2605.30313) simulates on a CPU too, by MuJoCoUni, which
batches MuJoCo C, or by MotrixSim. The interpreter is from an environment with `pip install mujoco-uni-runtime
motrixsim-core`.
"""

import contextlib
import dataclasses
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import torch

import physics
from benchmarks import cases
from benchmarks.physics import speed
from benchmarks.report import line
from gpurobot.settings.config import assign, leaves, option, pairs

PEER = Path(__file__).with_name("unilab_peer.py")
PEERS = ("mujoco_uni", "motrix")


@dataclasses.dataclass
class Settings:
  """Settings of a comparison; the time steps of UniLab are 0.01 s (Go2) and 0.00667 s (G1)."""

  python: str = option("", "interpreter of an environment with mujoco-uni-runtime and motrixsim-core")
  scene: str = option("", "MJCF file of a robot on flat ground")
  timestep: float = option(0.01, "time step of the physics", "s", low=0)
  threads: int = option(1, "number of threads of each engine", low=1)
  num_envs: int = option(1024, "number of environments", low=1)
  spread: float = option(0.15, "largest control offset from home, as a fraction of half the range", low=0)
  warm: int = option(20, "control steps before the timed situation", low=0)
  repetitions: int = option(7, "measurements of each engine, in turns; the median counts", low=1)


class Seconds(NamedTuple):
  """Duration of a run."""

  clock: float
  processor: float  # of all threads


def own_run(sim: physics.Simulation, start: speed.Situation) -> Callable[[], Seconds]:
  """Return a function that measures a run of this engine."""

  def measure() -> Seconds:
    sim.set_state(start.state)
    clock, processor = time.perf_counter(), time.process_time()
    for ctrl in start.controls:
      sim.ctrl.copy_(ctrl)
      sim.step(cases.SUBSTEPS)
    return Seconds(time.perf_counter() - clock, time.process_time() - processor)

  return measure


@contextlib.contextmanager
def peer_run(name: str, settings: Settings, file: Path) -> Iterator[Callable[[], Seconds]]:
  """Start one of UniLab's engines; yield a function that measures its run of the situation in a file."""
  words = [settings.python, str(PEER), name, settings.scene, str(settings.threads), str(file)]
  with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    assert process.stdin
    assert process.stdout
    requests, answers = process.stdin, process.stdout

    def measure() -> Seconds:
      with contextlib.suppress(BrokenPipeError):  # it has ended, and so have its answers
        print(file=requests, flush=True)
      for answer in answers:
        if answer.startswith("seconds "):  # the engine may print, too
          return Seconds(*map(float, answer.split()[1:]))
      sys.exit(f"{name} has ended")

    yield measure
    with contextlib.suppress(BrokenPipeError):
      requests.close()


def compare(settings: Settings) -> None:
  """Print the speeds [substeps/s] of all engines in one situation, and the ratios of ours to theirs.

  Ratios by the processor's time do not depend on other programs.
  """
  spec = mujoco.MjSpec.from_file(settings.scene)
  spec.option.timestep = settings.timestep
  model = physics.load_model(spec)
  case = cases.PhysicsCase(
    name=Path(settings.scene).parent.name,
    robot=settings.scene,
    warm=settings.warm,
    goal=1,
    spread=settings.spread,
    num_envs=settings.num_envs,
  )
  sim = physics.Simulation(model, case.num_envs, threads=settings.threads)
  start = speed.find_situation(case, sim)
  with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as peers:
    file = Path(folder) / "situation.npz"
    np.savez(
      file,
      qpos=start.qpos,
      qvel=start.qvel,
      controls=start.controls.double().numpy(),
      timestep=settings.timestep,
      substeps=cases.SUBSTEPS,
    )
    runs = {"gpurobot": own_run(sim, start)}
    runs |= {name: peers.enter_context(peer_run(name, settings, file)) for name in PEERS}
    for measure in runs.values():
      measure()  # the first run is slower
    rounds = [{name: run() for name, run in runs.items()} for _ in range(settings.repetitions)]
  title = f"unilab.{case.name}.threads{settings.threads}"
  substeps = case.num_envs * case.steps * cases.SUBSTEPS
  for unit in Seconds._fields:
    seconds = {name: [getattr(each[name], unit) for each in rounds] for name in runs}
    for name in runs:
      line(f"{title}.{name}.by_{unit}", substeps / statistics.median(seconds[name]))
    for name in PEERS:
      ratios = [theirs / ours for theirs, ours in zip(seconds[name], seconds["gpurobot"], strict=True)]
      line(f"{title}.{name}.ratio_by_{unit}", statistics.median(ratios))
  for what, value in speed.check(sim, start).items():
    line(f"{title}.{what}", value)


def run(words: list[str]) -> None:
  """Compare with the settings of the words."""
  settings = assign(Settings(), pairs(words, leaves(Settings())))
  for key, meaning in (("scene", "an MJCF file"), ("python", "the interpreter with UniLab's engines")):
    if not Path(getattr(settings, key)).is_file():
      sys.exit(f"{key}={getattr(settings, key)}: write {meaning}")
  torch.set_num_threads(1)  # its idle threads would spin on the core of the engine's second thread
  compare(settings)


if __name__ == "__main__":
  run(sys.argv[1:])
