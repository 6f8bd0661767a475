"""A check of the installation: python -m gpurobot.doctor [key=value ...].

It tells versions, devices, the cache of kernels and what can draw, then steps, trains and saves for ten
seconds. Its status is 1 where something that every training needs does not work.
"""

import dataclasses
import importlib.metadata
import importlib.util
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import tasks
from gpurobot import cli, extras
from gpurobot.config import ConfigError, Switch, defaults, option, to_dict
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from physics.parity import MujocoSimulation
from physics.trace.kernel import kernel_cache

PACKAGES = ("gpurobot", "torch", "warp-lang", "mujoco-core", "tensordict", "gymnasium", "numpy")
TASK = "cartpole"  # its kernel is compiled in seconds
STEPS = 20  # that are compared with MuJoCo C
CLOSE = 1e-3  # to MuJoCo C's positions after STEPS [m, rad]: float32 against float64 leaves 1e-6
MEGA, GIGA = 1e6, 1e9


@dataclasses.dataclass
class Doctor:
  """Settings of a look at the installation."""

  seconds: float = option(8.0, "length of the training that is tried", "s", low=0)
  device: str = option("auto", "where: cpu, cuda, cuda:<index>, or auto: cuda where there is one")
  debug: bool = option(False, "show where in the program something goes wrong")


def versions() -> Iterator[tuple[str, str]]:
  """Yield the versions of what is installed, and which extras are not."""
  yield "python", f"{platform.python_version()} on {platform.platform()}"
  for package in PACKAGES:
    try:
      yield package, importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      yield package, "not installed"
  for extra, packages in extras.EXTRAS.items():
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    told = f"without {', '.join(missing)}: pip install 'gpurobot[{extra}]'" if missing else "installed"
    yield f"extra {extra}", told


def devices() -> Iterator[tuple[str, str]]:
  """Yield what computes here."""
  facts = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
  known = dict(line.split(":", 1) for line in facts.splitlines() if ":" in line)
  known = {key.strip(): value.strip() for key, value in known.items()}
  vectors = next(
    (name for name in ("avx512f", "avx2") if name in known.get("flags", "").split()), "none known"
  )
  name = known.get("model name") or platform.processor() or platform.machine()
  yield "cpu", f"{name}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores, vectors: {vectors}"
  for index in range(torch.cuda.device_count()):
    gpu = torch.cuda.get_device_properties(index)
    yield f"cuda:{index}", f"{gpu.name}, {gpu.total_memory / GIGA:.0f} GB, CUDA {torch.version.cuda}"
  if not torch.cuda.is_available():
    why = "this torch is built without CUDA" if torch.version.cuda is None else "torch sees no GPU"
    yield "cuda", f"none: {why}"


def surroundings() -> Iterator[tuple[str, str]]:
  """Yield where compiled kernels are kept, and what draws without a display."""
  folder = kernel_cache()
  files = [file for file in folder.rglob("*") if file.is_file()]
  size = sum(file.stat().st_size for file in files) / MEGA
  writable = "" if os.access(folder, os.W_OK) else ", NOT writable: set WARP_CACHE_PATH to a folder that is"
  yield "kernel cache", f"{folder}, {len(files)} files, {size:.0f} MB{writable}"
  try:
    with extras.require_extra("viewer"):
      from gpurobot.viewer.offscreen import backend  # noqa: PLC0415
    yield "renderer", backend()
  except ConfigError as error:
    yield "renderer", f"none: {error}"


def check_physics(device: torch.device) -> str:
  """Step a robot here and in MuJoCo C; say how far they part, raise ConfigError where that is too far."""
  module, environments = tasks.load(TASK), 16
  config, start = module.Config(), time.monotonic()
  simulation = MujocoSimulation(module.Task.make_model(config), environments)
  here, there = (
    module.Task(
      config, environments, where, random=Random(0, environments, 0, where), training=False, simulation=sim
    )
    for where, sim in ((device, None), (torch.device("cpu"), simulation))
  )
  here.reset(), there.reset()
  worst, generator = 0.0, torch.Generator().manual_seed(0)
  for _ in range(STEPS):
    action = 2 * torch.rand(environments, here.num_actions, generator=generator) - 1
    here.step(action.to(device)), there.step(action)
    worst = max(worst, float((here.sim.qpos.cpu() - there.sim.qpos).abs().max()))
  if not worst < CLOSE:
    raise ConfigError(
      f"after {STEPS} steps positions are {worst:.1e} from MuJoCo C's: they should be {CLOSE:g}"
    )
  return f"{STEPS} steps as in MuJoCo C to {worst:.1e}, kernel included in {time.monotonic() - start:.1f} s"


def check_training(device: torch.device, seconds: float) -> str:
  """Train for so long and save; say how far it came, raise ConfigError at numbers that are not finite."""
  module, world = tasks.load(TASK), World()
  config = dataclasses.replace(defaults(module), compile=Switch.off)  # compiling takes longer than all else
  env = module.Task(config.env, config.num_envs, device, random=Random(0, config.num_envs, 0, device))
  learner, start = PPO(env, config, world), time.monotonic()
  returns: list[float] = []
  while not returns or time.monotonic() - start < seconds:
    learner.collect()
    learner.update()
    report = {name: float(value) for name, value in learner.report().items()}
    returns += [report["return"]] if math.isfinite(report["return"]) else []
    if not (math.isfinite(report["policy_loss"]) and math.isfinite(report["value_loss"])):
      raise ConfigError(f"after {learner.iteration} iterations the losses are not finite")
  speed = learner.steps / (time.monotonic() - start)
  with tempfile.TemporaryDirectory() as folder:
    state = {"config": to_dict(config), "learner": learner.state_dict(), "seconds": 0.0}
    size = checkpoint.write(folder, state).stat().st_size / MEGA
    checkpoint.read(folder)
  return (
    f"{learner.iteration} iterations, {speed:,.0f} steps/s, return {returns[0]:.0f} to {returns[-1]:.0f}, "
    f"a checkpoint of {size:.1f} MB"
  )


def attempt(name: str, check: Callable[[], str], *, debug: bool) -> bool:
  """Run a check and print how it ended; tell whether it went well."""
  try:
    print(f"{name}: {check()}", flush=True)
  except Exception as error:
    if debug:
      raise
    message = " ".join(str(error).split())
    print(f"{name}: FAILED: {type(error).__name__}: {message}; debug=true shows where", flush=True)
    return False
  return True


def look(settings: Doctor) -> None:
  """Print what is found; status 1 where a check failed."""
  world = World()
  device = world.device(settings.device)
  for part in (versions, devices, surroundings):
    for name, fact in part():
      print(f"{name}: {fact}", flush=True)
  world.use(device, None)
  checks = {
    f"physics on {device}": lambda: check_physics(device),
    f"training on {device}": lambda: check_training(device, settings.seconds),
  }
  well = {name: attempt(name, check, debug=settings.debug) for name, check in checks.items()}
  if not all(well.values()):
    raise SystemExit(1)


def main(argv: list[str]) -> None:
  """Look as the words say."""
  cli.start(Doctor(), "python -m gpurobot.doctor", argv, look)


if __name__ == "__main__":
  main(sys.argv[1:])
