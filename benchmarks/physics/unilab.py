"""UniLab's engines beside ours: the physics of a robot with a floating base, with equal threads.

`python -m benchmarks.physics.unilab python=<interpreter> scene=<MJCF file> timestep=0.01` prints substeps per
second of a core: by processor time, which depends little on other programs. UniLab (Jia et al. 2026, arXiv
2605.30313) simulates on a CPU too, by MuJoCoUni, which batches MuJoCo C, or by MotrixSim. The interpreter is
from an environment with `pip install mujoco-uni-runtime motrixsim-core`.
"""

import dataclasses
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np
import torch

import physics
from benchmarks import cases
from benchmarks.physics import speed
from benchmarks.report import line, start
from gpurobot.settings.config import ConfigError, assign, leaves, option, pairs

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
  repetitions: int = option(7, "measurements of each engine; the median counts", low=1)


def own_seconds(sim: physics.Simulation, situation: speed.Situation, repetitions: int) -> list[float]:
  """Run a situation in this engine; return the processor time of each run [s]."""
  found = []
  for _ in range(repetitions + 1):  # the first run is slower
    sim.set_state(situation.state)
    begin = time.process_time()
    for ctrl in situation.controls:
      sim.ctrl.copy_(ctrl)
      sim.step(cases.SUBSTEPS)
    found.append(time.process_time() - begin)
  return found[1:]


def peer_seconds(name: str, settings: Settings, file: Path) -> list[float]:
  """Run the situation in a file in one of UniLab's engines; return the processor time of each run [s]."""
  words = [settings.python, str(PEER), name, settings.scene, str(settings.threads), str(file)]
  done = subprocess.run(
    [*words, str(settings.repetitions + 1)], stdout=subprocess.PIPE, text=True, check=True
  )
  rows = [row.split() for row in done.stdout.splitlines()]  # the engine may print, too
  return [float(words[1]) for words in rows if words[:1] == ["seconds"]][1:]


def compare(settings: Settings) -> None:
  """Print the speeds [substeps/s] of all engines in one situation, and the ratios of ours to theirs."""
  spec = mujoco.MjSpec.from_file(settings.scene)
  spec.option.timestep = settings.timestep
  name = Path(settings.scene).parent.name
  case = cases.PhysicsCase(
    name, settings.scene, settings.warm, 1, spread=settings.spread, num_envs=settings.num_envs
  )
  sim = physics.Simulation(physics.load_model(spec), case.num_envs, threads=settings.threads)
  situation = speed.find_situation(case, sim)
  with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "situation.npz"
    np.savez(
      file,
      timestep=settings.timestep,
      substeps=cases.SUBSTEPS,
      qpos=situation.qpos,
      qvel=situation.qvel,
      controls=situation.controls.double().numpy(),
    )
    seconds = {each: statistics.median(peer_seconds(each, settings, file)) for each in PEERS}
  own = statistics.median(own_seconds(sim, situation, settings.repetitions))
  title, substeps = f"unilab.{name}.threads{settings.threads}", case.num_envs * case.steps * cases.SUBSTEPS
  line(f"{title}.gpurobot", substeps / own)
  for each, theirs in seconds.items():
    line(f"{title}.{each}", substeps / theirs)
    line(f"{title}.{each}.ratio", theirs / own)
  for what, value in speed.check(sim, situation).items():
    line(f"{title}.{what}", value)


def run(words: list[str]) -> None:
  """Compare with the settings of the words."""
  settings = assign(Settings(), pairs(words, leaves(Settings())))
  for key, meaning in (("scene", "an MJCF file"), ("python", "the interpreter with UniLab's engines")):
    if not Path(getattr(settings, key)).is_file():
      raise ConfigError(f"{key}={getattr(settings, key)}: write {meaning}")
  torch.set_num_threads(1)  # its idle threads would spin on the core of the engine's second thread
  compare(settings)


if __name__ == "__main__":
  start(run)
